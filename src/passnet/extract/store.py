"""Captured graphs on disk: Parquet files of one row a graph, merged without duplicates.

A file is the same, byte for byte, for the same rows. Each is replaced whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from passnet.errors import InputError, boundary
from passnet.extract.net import Domain
from passnet.records import SCHEMA_VERSION, decode, encode, read_json, write_json

VERSION_KEY = b"passnet_schema_version"
MANIFEST_FILE = "manifest.json"
SHARD_TEXT_BYTES = 256 * 2**20
"""Text after which a new shard is begun; it shrinks to about a tenth."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a graph was found: the entry of the catalog, the number among its graphs, in training
    or not, and whether it is that graph or the one by which autograd computes its gradients.
    """

    entry: str
    number: int
    train: bool = False
    part: Literal["forward", "backward"] = "forward"


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One graph: its fingerprints, text, arguments (JSON), ops, the names of the axes of arguments
    that nets were called with (JSON), the domain and task of its first source, and all sources.
    """

    full: str
    literals: str
    structure: str
    program: str
    tensors: str
    op_sequence: tuple[str, ...]
    axes: str
    domain: Domain
    task: str
    sources: tuple[Source, ...]


_SCHEMA = pa.schema(
    [
        ("full", pa.string()),
        ("literals", pa.string()),
        ("structure", pa.string()),
        ("program", pa.string()),
        ("tensors", pa.string()),
        ("op_sequence", pa.list_(pa.string())),
        ("axes", pa.string()),
        ("domain", pa.string()),
        ("task", pa.string()),
        ("sources", pa.string()),
    ],
    {VERSION_KEY: str(SCHEMA_VERSION).encode()},
)


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a set: its name, rows, and SHA-256."""

    file: str
    num_graphs: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a set of shards holds; equal sets have equal manifests."""

    schema_version: int
    num_graphs: int
    num_structures: int
    num_ops: int
    num_sources: int
    versions: dict[str, list[str]]
    shards: tuple[Shard, ...]


def write_rows(path: Path, rows: Sequence[GraphRow]) -> None:
    """Store rows in one file."""
    table = pa.Table.from_pylist([_as_dict(row) for row in rows], _SCHEMA)
    partial = path.with_suffix(path.suffix + ".partial")
    pq.write_table(table, partial, compression="zstd", compression_level=9)
    partial.replace(path)


def read_rows(path: Path) -> Iterator[GraphRow]:
    """The rows of a file.

    Raises:
        InputError: it is no file of graphs, or one of another version.
    """
    with boundary(InputError, f"{path}: not a Parquet file of graphs"):
        file = pq.ParquetFile(path)
        version = (file.schema_arrow.metadata or {}).get(VERSION_KEY, b"")
    if version != str(SCHEMA_VERSION).encode():
        raise InputError(
            f"{path}: schema version {version.decode(errors='replace')[:20] or 'missing'}, this "
            f"passnet reads {SCHEMA_VERSION}; capture again or install the matching passnet"
        )
    if not file.schema_arrow.equals(_SCHEMA):
        raise InputError(f"{path}: not the columns of captured graphs")
    for batch in file.iter_batches(64):
        for item in batch.to_pylist():
            sources = decode(item.pop("sources"), tuple[Source, ...], f"{path}: sources")
            sequence = tuple(item.pop("op_sequence"))
            yield GraphRow(op_sequence=sequence, sources=sources, **item)


def merge(paths: Iterable[Path], out: Path, versions: dict[str, list[str]]) -> Manifest:
    """One set of shards with each graph of some files once, in `out`.

    Graphs are told apart by their full fingerprint, and sorted by structure, so that those that
    differ in shapes alone lie together; sources are merged. The order of files has no influence.

    Args:
        paths: the files.
        out: the folder; shards that it has are replaced.
        versions: of the packages that the graphs come from, for the manifest.
    """
    merged: dict[str, GraphRow] = {}
    for path in sorted(paths):
        for row in read_rows(path):
            known = merged.get(row.full)
            merged[row.full] = row if known is None else _union(known, row)
    return write_set(
        out, sorted(merged.values(), key=lambda row: (row.structure, row.full)), versions
    )


def write_set(out: Path, rows: Sequence[GraphRow], versions: dict[str, list[str]]) -> Manifest:
    """Write rows as shards with a manifest, in their order; shards that were there are replaced."""
    shards = []
    for number, part in enumerate(_parts(rows)):
        file = out / f"graphs-{number:03}.parquet"
        write_rows(file, part)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        shards.append(Shard(file.name, len(part), digest))
    for stale in set(out.glob("graphs-*.parquet")) - {out / item.file for item in shards}:
        stale.unlink()
    manifest = Manifest(
        SCHEMA_VERSION,
        len(rows),
        len({row.structure for row in rows}),
        sum(len(row.op_sequence) for row in rows),
        sum(len(row.sources) for row in rows),
        {name: sorted(found) for name, found in sorted(versions.items())},
        tuple(shards),
    )
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


def shards_of(folder: Path) -> list[Path]:
    """The files of a set, as its manifest names them.

    Raises:
        InputError: the folder holds no set, or another than its manifest says.
    """
    return [folder / item.file for item in read_manifest(folder).shards]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a set, checked against its shards.

    Raises:
        InputError: it is missing, or a shard is not what it says.
    """
    manifest = read_json(folder / MANIFEST_FILE, Manifest)
    for item in manifest.shards:
        file = folder / item.file
        if not file.is_file():
            raise InputError(f"{file}: missing, though {MANIFEST_FILE} names it")
        if hashlib.sha256(file.read_bytes()).hexdigest() != item.sha256:
            raise InputError(f"{file}: not the file that {MANIFEST_FILE} describes; merge again")
    return manifest


def _union(one: GraphRow, other: GraphRow) -> GraphRow:
    """The same graph with the sources of both; the rest is that of the first source by name."""
    both = one.sources + other.sources
    sources = {(item.entry, item.number, item.train, item.part): item for item in both}
    ordered = tuple(sources[key] for key in sorted(sources))
    first = one if ordered[0] in one.sources else other
    return replace(first, sources=ordered)


def _parts(rows: Sequence[GraphRow]) -> Iterator[list[GraphRow]]:
    part: list[GraphRow] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.program) + len(row.tensors)
        if size > SHARD_TEXT_BYTES:
            yield part
            part, size = [], 0
    if part or not rows:
        yield part


def _as_dict(row: GraphRow) -> dict[str, Any]:
    found: dict[str, Any] = asdict(row)
    found["sources"] = encode(row.sources).decode()
    found["op_sequence"] = list(row.op_sequence)
    return found
