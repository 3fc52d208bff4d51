"""Dataclasses as rows of Parquet files, and sets of such files with their checksums.

A file is the same, byte for byte, for the same rows and the same version of pyarrow. Each is
replaced whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from passnet.errors import InputError, boundary
from passnet.records import SCHEMA_VERSION, decode, encode

T = TypeVar("T")

VERSION_KEY = b"passnet_schema_version"
SHARD_TEXT_BYTES = 256 * 2**20
"""Text after which a new shard is begun; it shrinks to about a tenth."""

ROWS_AT_ONCE = 64

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    tuple[str, ...]: pa.list_(pa.string()),
}
"""Types of fields that are columns of their own kind. All others are stored as JSON."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a set: its name, rows, and SHA-256."""

    file: str
    num_rows: int
    sha256: str


class Format(Generic[T]):
    """How rows of one dataclass are stored.

    Args:
        kind: the dataclass.
        what: its rows in words, for errors: "captured graphs".
    """

    def __init__(self, kind: type[T], what: str) -> None:
        self.kind = kind
        self.what = what

    @cached_property
    def _types(self) -> dict[str, Any]:
        hints = get_type_hints(self.kind)
        return {item.name: hints[item.name] for item in fields(self.kind)}  # type: ignore[arg-type]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, with the version of the schema beside them."""
        columns = [(name, _column(kind)) for name, kind in self._types.items()]
        return pa.schema(columns, {VERSION_KEY: str(SCHEMA_VERSION).encode()})

    def write(self, path: Path, rows: Iterable[T]) -> None:
        """Store rows in one file."""
        table = pa.Table.from_pylist([self._packed(row) for row in rows], self.schema)
        partial = path.with_suffix(path.suffix + ".partial")
        pq.write_table(table, partial, compression="zstd", compression_level=9)
        partial.replace(path)

    def read(self, path: Path) -> Iterator[T]:
        """The rows of a file.

        Raises:
            InputError: it is no file of such rows, or one of another version.
        """
        with boundary(InputError, f"{path}: not a Parquet file of {self.what}"):
            file = pq.ParquetFile(path)
            version = (file.schema_arrow.metadata or {}).get(VERSION_KEY, b"")
        if version != str(SCHEMA_VERSION).encode():
            found = version.decode(errors="replace")[:20] or "missing"
            raise InputError(
                f"{path}: schema version {found}, this passnet reads {SCHEMA_VERSION}; "
                "make it again or install the matching passnet"
            )
        if not file.schema_arrow.equals(self.schema):
            raise InputError(f"{path}: not the columns of {self.what}")
        for batch in file.iter_batches(ROWS_AT_ONCE):
            for item in batch.to_pylist():
                yield self._unpacked(item, path)

    def _packed(self, row: T) -> dict[str, Any]:
        return {name: _pack(getattr(row, name), kind) for name, kind in self._types.items()}

    def _unpacked(self, item: dict[str, Any], path: Path) -> T:
        values = {
            name: _unpack(item[name], kind, f"{path}: {name}") for name, kind in self._types.items()
        }
        return self.kind(**values)


def _column(kind: Any) -> pa.DataType:
    if get_origin(kind) is Literal:
        return pa.string()
    return _PLAIN.get(kind, pa.string())


def _pack(value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal or kind in _PLAIN:
        return list(value) if isinstance(value, tuple) else value
    return encode(value).decode()


def _unpack(value: Any, kind: Any, where: str) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InputError(f"{where} is {value!r}, and not one of {', '.join(get_args(kind))}")
        return value
    if value is None:
        raise InputError(f"{where} is missing")
    if kind in _PLAIN:
        return tuple(value) if isinstance(value, list) else value
    return decode(value, kind, where)


def write_shards(
    out: Path, name: str, rows: Sequence[T], form: Format[T], size: Callable[[T], int]
) -> tuple[Shard, ...]:
    """Write rows as `name-000.parquet` and on, in their order; what was there of these is replaced.

    Args:
        out: the folder.
        name: what the names of the files begin with.
        rows: all of them.
        form: how they are stored.
        size: the bytes of text of a row.
    """
    shards = []
    for number, part in enumerate(_parts(rows, size)):
        file = out / f"{name}-{number:03}.parquet"
        form.write(file, part)
        shards.append(Shard(file.name, len(part), _digest(file)))
    for stale in set(out.glob(f"{name}-*.parquet")) - {out / item.file for item in shards}:
        stale.unlink()
    return tuple(shards)


def check_shards(folder: Path, shards: Sequence[Shard], manifest: str) -> list[Path]:
    """The files of a set.

    Raises:
        InputError: one is missing, or not the one that the manifest describes.
    """
    for item in shards:
        file = folder / item.file
        if not file.is_file():
            raise InputError(f"{file}: missing, though {manifest} names it")
        if _digest(file) != item.sha256:
            raise InputError(f"{file}: not the file that {manifest} describes; make it again")
    return [folder / item.file for item in shards]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _parts(rows: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    part: list[T] = []
    held = 0
    for row in rows:
        part.append(row)
        held += size(row)
        if held > SHARD_TEXT_BYTES:
            yield part
            part, held = [], 0
    if part or not rows:
        yield part
