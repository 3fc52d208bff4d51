"""Graph directories as GraphNet and PassNet lay them out: find, read and write them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.errors import GraphError
from passnet.graph.meta import check_arguments, parse_meta, render_meta
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.syntax import MAX_TEXT_BYTES, gc_paused

GRAPH_FILES = ("graph_net.json", "model.py")
"""The files that make a directory a graph."""


@dataclass(frozen=True, slots=True)
class GraphSample:
    """A graph directory as data.

    `info` is the content of `graph_net.json`; `constraints` the text of
    `input_tensor_constraints.py`, carried along unread; `graph_hash` and `sources` the content of
    `graph_hash.txt` and `subgraph_sources.json`, None where the file is absent.
    """

    graph: Graph
    info: dict[str, Any] = field(default_factory=dict)
    constraints: str = ""
    graph_hash: str | None = None
    sources: dict[str, Any] | None = None


def find_graphs(root: Path) -> Iterator[Path]:
    """The graph directories at and below `root`, in sorted order.

    Raises:
        GraphError: `root` does not exist or is no directory.
    """
    if not root.is_dir():
        raise GraphError(
            f"{root}: no such directory; give a graph directory or one that holds some"
        )
    for folder, subfolders, names in os.walk(root):
        subfolders.sort()
        if all(name in names for name in GRAPH_FILES):
            yield Path(folder)


def read_sample(folder: Path) -> GraphSample:
    """The graph directory `folder`, read without executing any of its files.

    Raises:
        GraphError: a file is missing, unreadable or not of the expected form, or the arguments of
            `forward` and the meta files do not agree.
    """
    path = folder / "input_meta.py"
    with gc_paused():
        program = parse_program(_text(folder / "model.py"), str(folder / "model.py"))
        weights = parse_meta(_text(folder / "weight_meta.py"), str(folder / "weight_meta.py"))
        inputs = parse_meta(_text(path), str(path), "input") if path.exists() else ()
    names = [item.name for item in program.params]
    tensors = _in_order(names, weights + inputs, folder)
    check_arguments(names, tensors, str(folder))
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


def _in_order(
    names: list[str], specs: tuple[TensorSpec, ...], folder: Path
) -> tuple[TensorSpec, ...]:
    by_name = {item.name: item for item in specs}
    if len(by_name) != len(specs):
        names_seen = [item.name for item in specs]
        twice = next(name for name in by_name if names_seen.count(name) > 1)
        raise GraphError(f"{folder}: argument {twice} is described twice in the meta files")
    for name in names:
        if name not in by_name:
            raise GraphError(f"{folder}: argument {name} of forward is in no meta file")
    if len(names) != len(specs):
        extra = next(name for name in by_name if name not in names)
        raise GraphError(f"{folder}: the meta files describe {extra}, which forward does not take")
    return tuple(by_name[name] for name in names)


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise GraphError(f"{path}: not a file")
        if status.st_size > MAX_TEXT_BYTES:
            raise GraphError(f"{path}: larger than {MAX_TEXT_BYTES} bytes, not read")
        return path.read_text(encoding="utf-8")
    except OSError as cause:
        raise GraphError(f"{path}: {cause.strerror}") from cause
    except UnicodeDecodeError as cause:
        raise GraphError(f"{path}: not UTF-8 text") from cause


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path))
    except (ValueError, RecursionError) as cause:
        raise GraphError(f"{path}: not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise GraphError(f"{path}: expected a JSON object")
    return value


def write_sample(folder: Path, sample: GraphSample) -> None:
    """Write a graph directory; reading it back gives an equal sample.

    Raises:
        GraphError: the folder already holds a graph, or cannot be written.
    """
    if (folder / "model.py").exists():
        raise GraphError(f"{folder}: already holds a graph; choose an empty folder")
    by_role = {
        role: tuple(item for item in sample.graph.tensors if item.role == role)
        for role in ("weight", "input")
    }
    files = {
        "model.py": render_program(sample.graph.program),
        "weight_meta.py": render_meta(by_role["weight"]),
        "input_meta.py": render_meta(by_role["input"]),
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
