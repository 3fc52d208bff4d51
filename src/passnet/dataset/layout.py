"""How rows are written as graph directories, and read from them: GraphNet's and PassNet's layouts.

What the files of these layouts have no place for (kinds, nets, variants) stands under a key of its
own in `graph_net.json`; a directory without that key is read for what its names and files say.

Source: GraphNet and PassNet, as released (directory layouts of graphs and of samples).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from passnet.dataset.store import Occurrence, SubgraphRow, graph_of, main_dtype
from passnet.errors import InputError
from passnet.extract.domain import DOMAINS, Domain
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.files import GraphSample
from passnet.graph.render import render_program
from passnet.records.serialise import SCHEMA_VERSION, encode

if TYPE_CHECKING:
    from passnet.mine.subgraphs import SubgraphKind

FACTS_KEY = "passnet"
TYPES: dict[SubgraphKind, str] = {
    "fusible": "fusible_subgraphs",
    "classical": "typical_subgraphs",
    "single": "sole_op_subgraphs",
}
"""What PassNet calls the kinds, in the names of its folders."""

NO_TYPE = "full_graphs"
"""The folder for rows of no kind: graphs as captured."""

DOMAIN_TAGS: dict[str, Domain] = {"computer_vision": "cv"}
"""Domains that GraphNet's `heuristic_tag` spells in another way."""

_RANGE = re.compile(r"(?P<net>.+)_start(?P<start>\d+)_end(?P<stop>\d+)(_\d+)?")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a row says beyond its graph; see `SubgraphRow`."""

    schema_version: int
    kinds: tuple[str, ...]
    variant: str
    original: str
    domain: Domain
    nets: tuple[str, ...]
    num_graphs: int
    num_places: int
    places: tuple[Occurrence, ...]


def sample_of(row: SubgraphRow) -> GraphSample:
    """A row as the content of a graph directory, from which `row_of` makes the same row.

    Raises:
        InputError: its text or arguments cannot be read.
    """
    facts = Facts(
        SCHEMA_VERSION,
        row.kinds,
        row.variant,
        row.original,
        row.domain,
        row.nets,
        row.num_graphs,
        row.num_places,
        row.places,
    )
    info = {
        "framework": "torch",
        "num_devices_required": 1,
        "num_nodes_required": 1,
        "dynamic": False,
        "model_name": name_of(row),
        FACTS_KEY: msgspec.to_builtins(facts),
    }
    sources: dict[str, Any] = {}
    for place in row.places:
        sources.setdefault(place.graph, []).append([place.start, place.stop])
    return GraphSample(graph_of(row), info, "", row.full, sources)


def name_of(row: SubgraphRow) -> str:
    """The name of a row's directory: net, range, and the first of its fingerprint."""
    net = plain(row.nets[0].partition("/")[2] if row.nets else "") or "graph"
    at = f"_start{row.places[0].start}_end{row.places[0].stop}" if row.places else ""
    return f"{net[:80]}{at}_{row.full[:16]}"


def library_of(row: SubgraphRow) -> str:
    """The library that a row comes from first, as the name of a folder."""
    return plain(row.nets[0].partition("/")[0] if row.nets else "") or "unknown"


def plain(name: str) -> str:
    """A name as that of a folder: runs of odd characters as one "_", no dots before.

    Examples:
        >>> plain("../a b/c"), plain("resnet18.a1_in1k")
        ('_a_b_c', 'resnet18.a1_in1k')
    """
    return _ODD.sub("_", name).lstrip(".")


def graph_folder(row: SubgraphRow) -> PurePosixPath:
    """Where a row stands in a folder of the GraphNet layout."""
    return PurePosixPath(library_of(row), name_of(row))


def passnet_folder(row: SubgraphRow, name: str, type_folder: str) -> PurePosixPath:
    """Where a row stands in a folder of the PassNet layout, under the name of a set.

    The bucket is 0 for what was captured, and one of 1 to 9 for variants.
    """
    bucket = 0 if not row.variant else 1 + int(row.full[:8], 16) % 9
    library, folder = library_of(row), name_of(row)
    net = folder.split("_start")[0]
    return PurePosixPath(
        "graphs", name, type_folder, plain(row.dtype), str(bucket), "samples", library, net,
        "_decomposed", folder,
    )  # fmt: skip


def row_of(sample: GraphSample, path: PurePosixPath) -> SubgraphRow:
    """The row that a graph directory is: as it says under `FACTS_KEY`, else by its names.

    The row names all places of a directory without that key, be they more than a row may have.

    Args:
        sample: its content.
        path: where it stands in the folder that is read.

    Raises:
        InputError: it says what no row can have, or holds numbers that cannot be stored.
    """
    prints = fingerprints(sample.graph)
    ops = op_sequence(sample.graph.program)
    full = prints.full
    if full is None:
        raise InputError(f"{path}: its arguments have no shapes and dtypes")
    found = sample.info.get(FACTS_KEY)
    facts = _facts(sample, path, full, len(ops)) if found is None else _stated(found, path)
    try:
        tensors = encode(sample.graph.tensors).decode()
    except ValueError as cause:
        raise InputError(f"{path}: cannot be stored: {cause}") from cause
    return SubgraphRow(
        full=full,
        literals=prints.literals,
        structure=prints.structure,
        kinds=facts.kinds,
        program=render_program(sample.graph.program),
        tensors=tensors,
        op_sequence=ops,
        num_ops=len(ops),
        dtype=main_dtype(sample.graph.tensors),
        variant=facts.variant,
        original=facts.original,
        domain=facts.domain,
        nets=facts.nets,
        num_graphs=facts.num_graphs,
        num_places=facts.num_places,
        places=facts.places,
    )


def _stated(found: Any, path: PurePosixPath) -> Facts:
    try:
        facts = msgspec.convert(found, Facts)
    except msgspec.ValidationError as cause:
        raise InputError(f"{path}: {FACTS_KEY} in graph_net.json: {cause}") from cause
    if facts.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {facts.schema_version} in graph_net.json, this passnet reads "
            f"{SCHEMA_VERSION}; export it again or install the matching passnet"
        )
    return facts


def _facts(sample: GraphSample, path: PurePosixPath, full: str, num_ops: int) -> Facts:
    """What names and files of a directory from elsewhere say."""
    net = str(sample.info.get("model_name") or path.name)
    ranged = _RANGE.fullmatch(net)
    if ranged:
        net = ranged["net"]
    net = f"{_library(sample, path)}/{net}"
    if sample.sources:
        places = _sources(sample.sources, path)
    elif ranged:
        places = [Occurrence(net, int(ranged["start"]), int(ranged["stop"]))]
    else:
        places = [Occurrence(full, 0, num_ops)]
    tag = str(sample.info.get("heuristic_tag", "other"))
    domain = DOMAIN_TAGS.get(tag) or next((item for item in DOMAINS if item == tag), "other")
    return Facts(
        SCHEMA_VERSION,
        kinds=tuple(sorted(kind for kind, name in TYPES.items() if _holds(path, name))),
        variant="",
        original="",
        domain=domain,
        nets=(net,),
        num_graphs=len({item.graph for item in places}),
        num_places=len(places),
        places=tuple(places),
    )


def _holds(path: PurePosixPath, name: str) -> bool:
    return any(part.endswith(name) for part in path.parts)


def _library(sample: GraphSample, path: PurePosixPath) -> str:
    """The library by PassNet's folder `samples/<library>`, by GraphNet's `source`, or by the folder
    above.
    """
    parts = path.parts
    if "samples" in parts[:-2]:
        return parts[parts.index("samples") + 1]
    return str(sample.info.get("source") or path.parent.name or "unknown")


def _sources(found: dict[str, Any], path: PurePosixPath) -> list[Occurrence]:
    try:
        ranges = msgspec.convert(found, dict[str, list[tuple[int, int]]])
    except msgspec.ValidationError as cause:
        raise InputError(f"{path}: subgraph_sources.json: {cause}") from cause
    return sorted(
        {Occurrence(graph, *item) for graph, items in ranges.items() for item in items},
        key=lambda place: (place.graph, place.start, place.stop),
    )
