"""Dataclasses as rows of Parquet files, and sets of such files with their checksums.

Equal rows and an equal pyarrow give equal bytes. Files are replaced whole, and refused before they
are unpacked if they would be too large.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from passnet.core.records.parquet_pages import unpacked_bytes
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, replacing
from passnet.core.records.untrusted import check_link, open_untrusted, untrusted_digest
from passnet.errors import InputError, boundary

T = TypeVar("T")
_HASH = re.compile(r"[0-9a-f]+")

VERSION_KEY = b"passnet_schema_version"
CONTENT_KEY = b"passnet_content_version"
SHARD_TEXT_BYTES = 256 * 2**20
"""Text after which a new shard is begun; it shrinks to about a tenth."""

MAX_NAME_BYTES = 200
"""Longest name of a file in a set."""

ROWS_AT_ONCE = 256
ROW_GROUP_ROWS = 32_768
"""Rows that a reader takes at once: with fewer a scan is slower, with more cores idle."""

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    tuple[str, ...]: pa.list_(pa.string()),
}
"""Types of fields with columns of their kind. Others are stored as JSON."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a set: its name, rows, and SHA-256."""

    file: str
    num_rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The largest file that is read; a shard of captured graphs unpacks to 0.3 GB.

    `unpacked_bytes` limits the pages plus the text of all rows, shared text counted for each row;
    `ratio` limits that by the file's size, beyond `ratio_free_bytes`. The captured graphs that ship
    with passnet unpack to 32 times their size. `batch_bytes` limits the text of
    `ROWS_AT_ONCE` rows; text that rows share is stored once in a file.
    """

    file_bytes: int = 2 * 2**30
    unpacked_bytes: int = 8 * 2**30
    ratio: int = 256
    ratio_free_bytes: int = 2 * SHARD_TEXT_BYTES
    batch_bytes: int = 2**30

    def most_unpacked(self, file_bytes: int) -> int:
        """Return the most bytes that a file of this size may unpack to."""
        return min(self.unpacked_bytes, max(self.ratio_free_bytes, self.ratio * file_bytes))


@dataclass(frozen=True)
class Format(Generic[T]):
    """The Parquet format for rows of one dataclass, `kind`.

    `rows_name` names the rows in errors: "captured graphs". `hashes` are fields of hexadecimal
    digits, which neither repeat nor shrink, packed for quick reading. Files beyond `limits` are
    refused.
    """

    kind: type[T]
    rows_name: str
    hashes: tuple[str, ...] = ()
    limits: FileLimits = FileLimits()

    @cached_property
    def _types(self) -> dict[str, Any]:
        hints = get_type_hints(self.kind)
        return {field.name: hints[field.name] for field in fields(self.kind)}  # type: ignore[arg-type]

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns, with the schema version in their metadata."""
        columns = [(name, _PLAIN.get(kind, pa.string())) for name, kind in self._types.items()]
        return pa.schema(columns, {VERSION_KEY: str(SCHEMA_VERSION).encode()})

    def write(self, path: Path, rows: Iterable[T], version: str = "") -> None:
        """Store rows in one file, and the version of their content with the schema's, if any."""
        self.write_table(path, self.table(rows), version)

    def table(self, rows: Iterable[T]) -> pa.Table:
        """Return rows as a table."""
        values = [
            {name: _to_column(getattr(row, name), kind) for name, kind in self._types.items()}
            for row in rows
        ]
        return pa.Table.from_pylist(values, self.schema)

    def write_table(self, path: Path, table: pa.Table, version: str = "") -> None:
        """Store a table with the columns of `schema` in one file."""
        names = _leaf_names(self.schema)
        facts = self.schema.metadata | ({CONTENT_KEY: version.encode()} if version else {})
        with replacing(path) as partial:
            pq.write_table(
                table.cast(self.schema).replace_schema_metadata(facts),
                partial,
                row_group_size=ROW_GROUP_ROWS,
                compression="zstd",
                compression_level={name: 1 if name in self.hashes else 9 for name in names},
                use_dictionary=[name for name in names if name not in self.hashes],
            )

    def content_version(self, path: Path) -> str:
        """Return the version of the content of a file; empty where it has none."""
        with boundary(InputError, f"{path}: damaged"):
            facts = pq.read_schema(path).metadata or {}
        return facts.get(CONTENT_KEY, b"").decode(errors="replace")

    def read(self, path: Path) -> Iterator[T]:
        """Yield the rows of a file; raise InputError for another format, damage or excess size."""
        self.check(path)
        for batch in self._batches(path):
            for values in batch:
                yield self._row(values, str(path))

    def _batches(self, path: Path) -> Iterator[list[dict[str, Any]]]:
        """Yield the values of some rows at a time; refuse rows that would take too much memory."""
        num_bytes = 0
        with (
            boundary(InputError, f"{path}: damaged"),
            pq.ParquetFile(path, read_dictionary=_leaf_names(self.schema)) as file,
        ):
            for group in range(file.num_row_groups):
                # One at a time: lists of two row groups have no dictionary in common.
                for batch in file.iter_batches(ROWS_AT_ONCE, [group], use_threads=False):
                    batch_bytes = _text_bytes(batch)
                    num_bytes += batch_bytes
                    self._check_unpacked(num_bytes, path)
                    if batch_bytes > self.limits.batch_bytes:
                        raise InputError(
                            f"{path}: {len(batch)} rows have {batch_bytes} bytes, more than "
                            f"{self.limits.batch_bytes}"
                        )
                    yield batch.cast(self.schema).to_pylist()

    def _check_unpacked(self, num_bytes: int, path: Path) -> None:
        most = self.limits.most_unpacked(path.stat().st_size)
        if num_bytes > most:
            raise InputError(f"{path}: unpacks to {num_bytes} bytes, more than {most} allowed")

    def rows(self, table: pa.Table, where: str) -> Iterator[T]:
        """Yield the rows of a table with these columns; an InputError names `where`."""
        for batch in table.to_batches(ROWS_AT_ONCE):
            for values in batch.to_pylist():
                yield self._row(values, where)

    def check(self, path: Path) -> int:
        """Check a file except the content of its rows; return their number, or raise InputError."""
        text = f"{path}: not a Parquet file of {self.rows_name}, or a damaged one"
        with boundary(InputError, text, is_clear=True):
            with open_untrusted(path, self.limits.file_bytes) as stream:
                meta = pq.read_metadata(stream)
            schema = meta.schema.to_arrow_schema()
        version = (schema.metadata or {}).get(VERSION_KEY, b"")
        if version != str(SCHEMA_VERSION).encode():
            shown = version.decode(errors="replace")[:20] or "missing"
            raise InputError(
                f"{path}: schema version {shown}, this passnet reads {SCHEMA_VERSION}; "
                "make it again or install the matching passnet"
            )
        if not schema.equals(self.schema):
            raise InputError(f"{path}: not the columns of {self.rows_name}")
        with (
            boundary(InputError, f"{path}: damaged"),
            open_untrusted(path, self.limits.file_bytes) as stream,
            mmap(stream.fileno(), 0, access=ACCESS_READ) as pages,
        ):
            self._check_unpacked(unpacked_bytes(pages), path)
        return meta.num_rows

    def _row(self, values: dict[str, Any], where: str) -> T:
        columns = {
            name: _from_column(values[name], kind, f"{where}: {name}")
            for name, kind in self._types.items()
        }
        for name in self.hashes:
            if columns[name] is not None and _HASH.fullmatch(columns[name]) is None:
                raise InputError(f"{where}: {name} is {columns[name][:80]!r}, and no hash")
        return self.kind(**columns)


def _leaf_names(schema: pa.Schema) -> list[str]:
    """Return Parquet's names of columns; a list's is that of its items."""
    is_list = pa.types.is_list
    return [field.name + ".list.element" * is_list(field.type) for field in schema]


def _text_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch's texts, with shared texts counted for each row."""
    num_bytes = 0
    for column in batch.columns:
        texts = column.flatten() if pa.types.is_list(column.type) else column
        if pa.types.is_dictionary(texts.type) and len(texts):
            lengths = pc.call_function("binary_length", [texts.dictionary]).cast(pa.int64())
            num_bytes += pc.call_function("sum", [lengths.take(texts.indices)]).as_py() or 0
    return num_bytes


def _to_column(value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal or kind in _PLAIN:
        return list(value) if isinstance(value, tuple) else value
    return encode(value).decode()


def _from_column(value: Any, kind: Any, where: str) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InputError(f"{where} is {value!r}, and not one of {', '.join(get_args(kind))}")
        return value
    if value is None and kind != str | None:
        raise InputError(f"{where} is missing")
    if isinstance(value, list):
        if None in value:
            raise InputError(f"{where} has a part that is missing")
        return tuple(value)
    return value if kind in _PLAIN else decode(value, kind, where)


def write_shards(
    out: Path,
    name: str,
    rows: Sequence[T],
    row_format: Format[T],
    size: Callable[[T], int],
    kept: Sequence[Shard] = (),
) -> tuple[Shard, ...]:
    """Write rows to `out` as `name-000.parquet` etc., split by `size`, a row's bytes of text.

    The shards that are `kept` come first, and their files stay; all others of that name go.
    """
    shards = [*kept]
    for number, part in enumerate(split_rows(rows, size), len(kept)):
        file = out / f"{name}-{number:03}.parquet"
        row_format.write(file, part)
        shards.append(Shard(file.name, len(part), _digest(file)))
    for stale in set(out.glob(f"{name}-*.parquet")) - {out / shard.file for shard in shards}:
        stale.unlink()
    return tuple(shards)


def check_shards(folder: Path, shards: Sequence[Shard], manifest: str) -> list[Path]:
    """Return the files of a set; raise InputError if one is missing or has another hash."""
    files = []
    for shard in shards:
        file = shard_path(folder, shard, manifest)
        if _digest(file) != shard.sha256:
            raise InputError(f"{file}: not the file that {manifest} describes; make it again")
        files.append(file)
    return files


def shard_path(folder: Path, shard: Shard, manifest: str) -> Path:
    """Return a shard's file; raise InputError if it is missing or not in the manifest's folder."""
    file = folder / shard.file
    is_name = shard.file.isprintable() and len(shard.file.encode()) <= MAX_NAME_BYTES
    if not is_name or file.name != shard.file or shard.file == "..":
        raise InputError(f"{folder / manifest}: {shard.file[:99]!r} is no file name in its folder")
    if not file.is_file():
        raise InputError(f"{file}: missing, though {manifest} names it")
    check_link(file)
    return file


def _digest(file: Path) -> str:
    return untrusted_digest(file).hex()


def split_rows(rows: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield rows in parts of limited text, by `size` of a row; one empty part without rows."""
    part: list[T] = []
    num_bytes = 0
    for row in rows:
        part.append(row)
        num_bytes += size(row)
        if num_bytes > SHARD_TEXT_BYTES:
            yield part
            part, num_bytes = [], 0
    if part or not rows:
        yield part
