"""Rows as graph directories in the layouts of GraphNet and PassNet, and back.

Facts without a place there (kinds, nets, variants) are under our own key in `graph_net.json`.
Without that key, names and files are read instead.

Source: GraphNet and PassNet, as released (directory layouts of graphs and of samples).
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.data.capture.record import DOMAINS, Domain, library_of, split_entry
from passnet.data.dataset.store import (
    Occurrence,
    Provenance,
    StoredInt,
    SubgraphRow,
    graph_of,
    row_of_graph,
)
from passnet.errors import InputError
from passnet.graph.text.files import GraphSample

if TYPE_CHECKING:
    from passnet.data.mine.subgraphs import SubgraphKind

FACTS_KEY = "passnet"
TYPE_FOLDERS: dict[SubgraphKind, str] = {
    "fusible": "fusible_subgraphs",
    "classical": "typical_subgraphs",
    "single": "sole_op_subgraphs",
}
"""PassNet's names of the kinds in its folders."""

NO_TYPE_FOLDER = "full_graphs"
"""The folder for rows of no kind: graphs as captured."""

DOMAIN_TAGS: dict[str, Domain] = {**{name: name for name in DOMAINS}, "computer_vision": "cv"}

_RANGE = re.compile(r"(?P<net>.+)_start(?P<start>\d{1,18})_end(?P<stop>\d{1,18})(_\d+)?")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def sample_of(row: SubgraphRow) -> GraphSample:
    """Return a row as a graph directory; `row_of` makes the same row of it."""
    provenance = {field.name: getattr(row, field.name) for field in fields(Provenance)}
    info = {
        "framework": "torch",
        "num_devices_required": 1,
        "num_nodes_required": 1,
        "dynamic": False,
        "model_name": name_of(row),
        FACTS_KEY: msgspec.to_builtins({"schema_version": SCHEMA_VERSION, **provenance}),
    }
    sources: dict[str, Any] = {}
    for occurrence in row.places:
        ops = [occurrence.start, occurrence.stop]
        sources.setdefault(occurrence.graph, []).append(ops)
    return GraphSample(graph_of(row), info, "", row.full, sources)


def name_of(row: SubgraphRow) -> str:
    """Return the name of a row's directory: net, range, and the start of its fingerprint.

    A row of several nets does not say which of them has a range; the name has none then.
    """
    has_range = row.places and len(row.nets) < 2
    ops = f"_start{row.places[0].start}_end{row.places[0].stop}" if has_range else ""
    return f"{_net_folder(row)}{ops}_{row.full[:16]}"


def _net_folder(row: SubgraphRow) -> str:
    """Return a row's first net, as the name of a folder."""
    return (plain_name(split_entry(row.nets[0])[1] if row.nets else "") or "graph")[:80]


def library_folder(row: SubgraphRow) -> str:
    """Return the library of a row's first net, as the name of a folder."""
    return plain_name(library_of(row.nets[0]) if row.nets else "") or "unknown"


def plain_name(name: str) -> str:
    """Return a folder name: runs of odd characters become one "_", leading dots go.

    Examples:
        >>> plain_name("../a b/c"), plain_name("resnet18.a1_in1k")
        ('_a_b_c', 'resnet18.a1_in1k')
    """
    return _ODD.sub("_", name).lstrip(".")


def passnet_folder(row: SubgraphRow, name: str, type_folder: str) -> PurePosixPath:
    """Return the path of a row in the PassNet layout: bucket 0 if captured, 1 to 9 for variants."""
    bucket = 0 if not row.variant else 1 + int(row.full[:8], 16) % 9
    return PurePosixPath(
        "graphs", name, type_folder, plain_name(row.dtype), str(bucket),
        "samples", library_folder(row), _net_folder(row), "_decomposed", name_of(row),
    )  # fmt: skip


def row_of(sample: GraphSample, path: PurePosixPath) -> SubgraphRow:
    """Return the row of a graph directory: as stated under `FACTS_KEY`, else by its names. Without
    that key it names all places, be they more than a row may have. `path` is relative to the folder
    that is read.
    """
    facts = sample.info.get(FACTS_KEY)
    if facts is not None:
        return row_of_graph(sample.graph, _stated(facts, path), str(path))
    net, occurrences = _net_and_occurrences(sample, path)
    if sample.sources:
        occurrences = _sources(sample.sources, path)
    kinds = {
        kind
        for kind, folder in TYPE_FOLDERS.items()
        if any(part.endswith(folder) for part in path.parts)
    }
    domain = DOMAIN_TAGS.get(str(sample.info.get("heuristic_tag")), "other")
    num_graphs = len({occurrence.graph for occurrence in occurrences})
    counts = (num_graphs, len(occurrences), tuple(occurrences))
    provenance = Provenance(tuple(sorted(kinds)), "", "", domain, (net,), *counts)
    row = row_of_graph(sample.graph, provenance, str(path))
    if occurrences or sample.sources:
        return row
    whole = Occurrence(row.full, 0, row.num_ops)
    return replace(row, num_graphs=1, num_places=1, places=(whole,))


def _stated(facts: Any, path: PurePosixPath) -> Provenance:
    try:
        version = msgspec.convert(facts, dict[str, Any]).get("schema_version")
        if version == SCHEMA_VERSION:
            return msgspec.convert(facts, Provenance)
    except msgspec.ValidationError as cause:
        raise InputError(f"{path}: {FACTS_KEY} in graph_net.json: {cause}") from cause
    raise InputError(
        f"{path}: schema version {version} in graph_net.json, this passnet reads "
        f"{SCHEMA_VERSION}; export it again or install the matching passnet"
    )


def _net_and_occurrences(sample: GraphSample, path: PurePosixPath) -> tuple[str, list[Occurrence]]:
    """Return the net of a directory, by its folders and files, and its ops if named."""
    if "samples" in path.parts[:-2]:
        library = path.parts[path.parts.index("samples") + 1]
    else:
        library = str(sample.info.get("source") or path.parent.name or "unknown")
    name = str(sample.info.get("model_name") or path.name)
    ranged = _RANGE.fullmatch(name)
    if ranged is None:
        return f"{library}/{name}", []
    net = f"{library}/{ranged['net']}"
    return net, [Occurrence(net, int(ranged["start"]), int(ranged["stop"]))]


def _sources(sources: dict[str, Any], path: PurePosixPath) -> list[Occurrence]:
    try:
        ranges = msgspec.convert(sources, dict[str, list[tuple[StoredInt, StoredInt]]])
    except msgspec.ValidationError as cause:
        raise InputError(f"{path}: subgraph_sources.json: {cause}") from cause
    return sorted({Occurrence(graph, *ops) for graph in ranges for ops in ranges[graph]})
