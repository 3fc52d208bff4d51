"""Graphs on disk: directories in the layout of GraphNet and PassNet, and a row's texts."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import decode
from passnet.core.records.untrusted import check_link, read_untrusted_text
from passnet.errors import GraphError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.meta import check_arguments, check_spec, parse_meta, render_meta
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.text.syntax import MAX_TEXT_BYTES, gc_paused


@dataclass(frozen=True, slots=True)
class GraphSample:
    """A graph directory as data.

    `info` is `graph_net.json`, `constraints` the unread `input_tensor_constraints.py`; `graph_hash`
    and `sources` are `graph_hash.txt` and `subgraph_sources.json`, None without these files.
    """

    graph: Graph
    info: dict[str, Any] = field(default_factory=dict)
    constraints: str = ""
    graph_hash: str | None = None
    sources: dict[str, Any] | None = None


def find_graphs(root: Path) -> Iterator[Path]:
    """Yield the graph directories at and below `root`, sorted; raise GraphError without it."""
    if not root.is_dir():
        raise GraphError(f"{root}: no such directory; give one that holds graphs")
    for folder, subfolders, names in os.walk(root):
        subfolders.sort()
        if {"graph_net.json", "model.py"} <= {*names}:  # the files that make it a graph
            yield Path(folder)


def read_sample(folder: Path) -> GraphSample:
    """Read a graph directory without executing it.

    Raises:
        GraphError: a file is malformed, or is a link to outside of the directory.
    """
    path = folder / "input_meta.py"
    with gc_paused():
        program = parse_program(_text(folder / "model.py"), str(folder / "model.py"))
        weights = parse_meta(_text(folder / "weight_meta.py"), str(folder / "weight_meta.py"))
        inputs = parse_meta(_text(path), str(path), "input") if path.exists() else ()
    tensors = _in_order([param.name for param in program.params], weights + inputs, folder)
    check_arguments(program, tensors, str(folder))
    constraints = folder / "input_tensor_constraints.py"
    hash_file = folder / "graph_hash.txt"
    sources = folder / "subgraph_sources.json"
    return GraphSample(
        Graph(program, tensors),
        _json(folder / "graph_net.json"),
        _text(constraints) if constraints.exists() else "",
        _text(hash_file).strip() if hash_file.exists() else None,
        _json(sources) if sources.exists() else None,
    )


def graph_from_row(program: str, tensors: str, where: str) -> Graph:
    """Return the graph of a row's program text and JSON specs; an InputError names `where`."""
    specs = decode(tensors, tuple[TensorSpec, ...], where)
    for spec in specs:
        check_spec(spec, where)
    graph = Graph(parse_program(program, where), specs)
    check_arguments(graph.program, specs, where)
    return graph


def _in_order(
    names: list[str], specs: tuple[TensorSpec, ...], folder: Path
) -> tuple[TensorSpec, ...]:
    by_name: dict[str, TensorSpec] = {}
    for spec in specs:
        if spec.name in by_name:
            raise GraphError(f"{folder}: argument {spec.name} is described twice in the meta files")
        by_name[spec.name] = spec
    for name in names:
        if name not in by_name:
            raise GraphError(f"{folder}: argument {name} of forward is in no meta file")
    for name in by_name:
        if name not in names:
            raise GraphError(f"{folder}: meta files describe {name}, which forward does not take")
    return tuple(by_name[name] for name in names)


def _text(path: Path) -> str:
    """Return the text of a file in a stranger's folder."""
    check_link(path, GraphError)
    return read_untrusted_text(path, MAX_TEXT_BYTES, GraphError)


def _json(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise GraphError(f"{path}: not JSON: {cause}") from cause
    if not isinstance(content, dict):
        raise GraphError(f"{path}: expected a JSON object")
    return content


def write_sample(folder: Path, sample: GraphSample) -> None:
    """Write a graph directory that reads back equal; raise GraphError if one is there."""
    if (folder / "model.py").exists():
        raise GraphError(f"{folder}: already holds a graph; choose an empty folder")
    tensors = sample.graph.tensors
    files = {
        "model.py": render_program(sample.graph.program),
        "weight_meta.py": render_meta([spec for spec in tensors if spec.role == "weight"]),
        "input_meta.py": render_meta([spec for spec in tensors if spec.role == "input"]),
        "input_tensor_constraints.py": sample.constraints,
        "graph_net.json": json.dumps(sample.info, indent=4),
    }
    if sample.graph_hash is not None:
        files["graph_hash.txt"] = sample.graph_hash
    if sample.sources is not None:
        files["subgraph_sources.json"] = json.dumps(sample.sources, indent=4)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as cause:
        raise GraphError(f"{folder}: {cause.strerror}") from cause
