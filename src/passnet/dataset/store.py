"""A dataset of subgraphs on disk: Parquet files of one row a subgraph.

Subgraphs with the same ops, data flow, literals, shapes and dtypes are one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.errors import InputError
from passnet.extract.domain import Domain
from passnet.graph.files import graph_from_row
from passnet.graph.spec import Graph, TensorSpec, main_float
from passnet.records.parquet import Format, Shard, check_shards, write_shards
from passnet.records.serialise import SCHEMA_VERSION, read_json, write_json

MANIFEST_FILE = "dataset.json"
SHARD_NAME = "subgraphs"
MAX_PLACES = 8
"""Places that a row names; it counts them all."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The ops [start, stop) of a captured graph, named by its full fingerprint."""

    graph: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SubgraphRow:
    """One subgraph: fingerprints, text, arguments (JSON), ops, and where it comes from.

    `dtype`: the floating-point dtype of most elements of its arguments, "none" without any.
    `variant`: what was changed of what was captured ("float16", "batch=4"), `original` the full
    fingerprint of the row it was made of; both are empty where nothing was. `kinds`: how it was
    found; see `mine.subgraphs`. `places` are the first few of `num_places` places in `num_graphs`
    captured graphs; `nets` the entries of the catalog whose graphs they are, the first few by name;
    `domain` that of the first.
    """

    full: str
    literals: str
    structure: str
    kinds: tuple[str, ...]
    program: str
    tensors: str
    op_sequence: tuple[str, ...]
    num_ops: int
    dtype: str
    variant: str
    original: str
    domain: Domain
    nets: tuple[str, ...]
    num_graphs: int
    num_places: int
    places: tuple[Occurrence, ...]


SUBGRAPHS: Format[SubgraphRow] = Format(
    SubgraphRow, "subgraphs", hashes=("full", "literals", "structure")
)


def graph_of(row: SubgraphRow) -> Graph:
    """The graph that a row describes.

    Raises:
        InputError: its text or its arguments cannot be read, or do not agree.
    """
    return graph_from_row(row.program, row.tensors, row.full[:16])


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """What a dataset holds; equal datasets have equal manifests.

    `kinds` counts rows by kind; `versions` are those of the packages that the nets come from.
    """

    schema_version: int
    num_subgraphs: int
    num_structures: int
    num_op_sequences: int
    num_places: int
    kinds: dict[str, int]
    domains: dict[str, int]
    versions: dict[str, list[str]]
    shards: tuple[Shard, ...]


def main_dtype(tensors: Iterable[TensorSpec]) -> str:
    """The floating-point dtype of most elements of some arguments; "none" without any.

    Examples:
        >>> main_dtype([TensorSpec("x", (2,), "bfloat16"), TensorSpec("i", (2,), "int64")])
        'bfloat16'
    """
    return main_float(tensors) or "none"


def merge_subgraphs(
    paths: Iterable[Path], out: Path, versions: Mapping[str, Sequence[str]]
) -> DatasetManifest:
    """One dataset with each subgraph of some files once, in `out`; sorted by structure.

    The files must be of different captured graphs: places are added up.

    Args:
        paths: the files; their order has no influence.
        out: the folder; shards that it has are replaced.
        versions: of the packages that the nets come from.
    """
    merged: dict[str, SubgraphRow] = {}
    for path in sorted(paths):
        for row in SUBGRAPHS.read(path):
            known = merged.get(row.full)
            merged[row.full] = row if known is None else union(known, row)
    rows = sorted(merged.values(), key=lambda row: (row.structure, row.full))
    return write_dataset(out, rows, versions)


def union(one: SubgraphRow, other: SubgraphRow) -> SubgraphRow:
    """The same subgraph with the places of both; what was captured goes before what was made."""
    if bool(one.variant) != bool(other.variant):
        return other if one.variant else one
    nets = sorted({*one.nets, *other.nets})
    first = one if nets and nets[0] in one.nets else other
    return replace(
        first,
        original=min(one.original, other.original),
        kinds=tuple(sorted({*one.kinds, *other.kinds})),
        nets=tuple(nets[:MAX_PLACES]),
        num_graphs=one.num_graphs + other.num_graphs,
        num_places=one.num_places + other.num_places,
        places=tuple(sorted(one.places + other.places, key=_order)[:MAX_PLACES]),
    )


def _order(place: Occurrence) -> tuple[str, int, int]:
    return place.graph, place.start, place.stop


def write_dataset(
    out: Path, rows: Sequence[SubgraphRow], versions: Mapping[str, Sequence[str]]
) -> DatasetManifest:
    """Write rows as shards with a manifest, in their order; shards that were there are replaced."""
    manifest = DatasetManifest(
        SCHEMA_VERSION,
        len(rows),
        len({row.structure for row in rows}),
        len({row.op_sequence for row in rows}),
        sum(row.num_places for row in rows),
        Counter(sorted(kind for row in rows for kind in row.kinds)),
        Counter(sorted(row.domain for row in rows)),
        {name: sorted(found) for name, found in sorted(versions.items())},
        write_shards(out, SHARD_NAME, rows, SUBGRAPHS, lambda row: len(row.program)),
    )
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


@dataclass(frozen=True, slots=True)
class _Version:
    schema_version: int


def read_manifest(folder: Path) -> DatasetManifest:
    """The manifest of a dataset.

    Raises:
        InputError: there is none, or one of another version.
    """
    path = folder / MANIFEST_FILE
    found = read_json(path, _Version).schema_version
    if found != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {found}, this passnet reads {SCHEMA_VERSION}; "
            "make the dataset again or install the matching passnet"
        )
    return read_json(path, DatasetManifest)


def read_dataset(folder: Path) -> tuple[DatasetManifest, list[Path]]:
    """The manifest of a dataset and its files, checked against it.

    Raises:
        InputError: there is none, one of another version, or a file is missing or not the one
            described.
    """
    manifest = read_manifest(folder)
    return manifest, check_shards(folder, manifest.shards, MANIFEST_FILE)
