"""A dataset of subgraphs on disk: Parquet files of one row a subgraph.

Subgraphs with the same ops, data flow, literals, shapes and dtypes are one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.extract.net import Domain
from passnet.graph.spec import TensorSpec
from passnet.parquet import Format, Shard, check_shards, write_shards
from passnet.records import SCHEMA_VERSION, read_json, write_json

MANIFEST_FILE = "dataset.json"
SHARD_NAME = "subgraphs"
MAX_PLACES = 8
"""Places that a row names; it counts them all."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ops [start, stop) of a captured graph, named by its full fingerprint."""

    graph: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SubgraphRow:
    """One subgraph: fingerprints, text, arguments (JSON), ops, and where it comes from.

    `dtype`: the floating-point dtype of most of its arguments, "none" where none is one. `variant`:
    what was changed of what was captured ("float16", "batch=4"), `original` the full fingerprint of
    the row it was made of; both are empty where nothing was. `kinds`: how it was found; see
    `mine.subgraphs`. `places` are the first few of `num_places` places in `num_graphs` captured
    graphs; `nets` the entries of the catalog whose graphs they are, the first few by name; `domain`
    that of the first.
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
    places: tuple[Place, ...]


SUBGRAPHS: Format[SubgraphRow] = Format(SubgraphRow, "subgraphs")


@dataclass(frozen=True, slots=True)
class DatasetManifest:
    """What a dataset holds; equal datasets have equal manifests. `kinds` counts rows by kind."""

    schema_version: int
    num_subgraphs: int
    num_structures: int
    num_op_sequences: int
    num_places: int
    kinds: dict[str, int]
    domains: dict[str, int]
    shards: tuple[Shard, ...]


def main_dtype(tensors: Iterable[TensorSpec]) -> str:
    """The floating-point dtype of most arguments, the first among equals; "none" without any.

    Examples:
        >>> main_dtype([TensorSpec("x", (2,), "bfloat16"), TensorSpec("i", (2,), "int64")])
        'bfloat16'
    """
    found = Counter(item.dtype for item in tensors if "float" in item.dtype)
    return found.most_common(1)[0][0] if found else "none"


def merge_subgraphs(paths: Iterable[Path], out: Path) -> DatasetManifest:
    """One dataset with each subgraph of some files once, in `out`; sorted by structure.

    The files must be of different captured graphs: places are added up.

    Args:
        paths: the files; their order has no influence.
        out: the folder; shards that it has are replaced.
    """
    merged: dict[str, SubgraphRow] = {}
    for path in sorted(paths):
        for row in SUBGRAPHS.read(path):
            known = merged.get(row.full)
            merged[row.full] = row if known is None else union(known, row)
    rows = sorted(merged.values(), key=lambda row: (row.structure, row.full))
    return write_dataset(out, rows)


def union(one: SubgraphRow, other: SubgraphRow) -> SubgraphRow:
    """The same subgraph with the places of both."""
    nets = sorted({*one.nets, *other.nets})
    first = one if nets and nets[0] in one.nets else other
    return replace(
        first,
        kinds=tuple(sorted({*one.kinds, *other.kinds})),
        nets=tuple(nets[:MAX_PLACES]),
        num_graphs=one.num_graphs + other.num_graphs,
        num_places=one.num_places + other.num_places,
        places=tuple(sorted(one.places + other.places, key=_order)[:MAX_PLACES]),
    )


def _order(place: Place) -> tuple[str, int, int]:
    return place.graph, place.start, place.stop


def write_dataset(out: Path, rows: Sequence[SubgraphRow]) -> DatasetManifest:
    """Write rows as shards with a manifest, in their order; shards that were there are replaced."""
    manifest = DatasetManifest(
        SCHEMA_VERSION,
        len(rows),
        len({row.structure for row in rows}),
        len({row.op_sequence for row in rows}),
        sum(row.num_places for row in rows),
        Counter(sorted(kind for row in rows for kind in row.kinds)),
        Counter(sorted(row.domain for row in rows)),
        write_shards(out, SHARD_NAME, rows, SUBGRAPHS, lambda row: len(row.program)),
    )
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


def read_dataset(folder: Path) -> tuple[DatasetManifest, list[Path]]:
    """The manifest of a dataset and its files, checked against it.

    Raises:
        InputError: there is none, or a file is missing or not the one described.
    """
    manifest = read_json(folder / MANIFEST_FILE, DatasetManifest)
    return manifest, check_shards(folder, manifest.shards, MANIFEST_FILE)
