"""The only serialiser: frozen dataclasses to and from JSON lines, strict, with a schema version."""

from __future__ import annotations

import gzip
import math
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from passnet.core.records.untrusted import open_untrusted, read_untrusted
from passnet.core.terminal.visible_text import visible
from passnet.errors import InputError, is_exhausted, naming, os_error_sentence

SCHEMA_VERSION = 1
"""Version of every record written by this package; it grows when a field changes meaning."""

MAX_LINE_BYTES = 2**24
MAX_LINES = 2**24
MAX_LINES_BYTES = 2**33
MAX_UNPACKED_BYTES = 2**28
"""Limits of a JSON-lines file: its longest line, its lines, its size on disk, and the size to which
its gzip copy unpacks."""

_BROKEN = "JSON is malformed: "
"""How texts of msgspec's errors begin that are about JSON itself."""

_BLOCK_BYTES = 2**16

T = TypeVar("T")


def _check_finite(value: object, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}; a record holds None for what was not measured")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_finite(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            _check_finite(inner, f"{path}[{index}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _check_finite(getattr(value, field.name), f"{path}.{field.name}")


def encode(record: object) -> bytes:
    """Return a record as one line of JSON; raise ValueError for NaN and infinite floats."""
    _check_finite(record, type(record).__name__)
    return msgspec.json.encode(record)


def decode(data: bytes | str, kind: type[T], where: str = "record") -> T:
    """Decode a record of type `kind`; raise InputError unless it is JSON with such fields."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        name, text = getattr(kind, "__name__", str(kind)), str(cause).replace(_BROKEN, "no JSON, ")
        raise InputError(f"{where}: not a valid {name}: {text}") from cause


def read_lines(path: Path, kind: type[T], skip_torn: bool = False) -> Iterator[T]:
    """Yield the records of a JSON-lines file, or of its gzip copy, in order; skip blank lines.

    With `skip_torn`, also skip an unfinished last line. An invalid line is an InputError.
    """
    where = visible(str(path))
    for number, line in _numbered_lines(path):
        if line.strip() and not (skip_torn and not line.endswith(b"\n")):
            yield decode(line, kind, f"{where}:{number}")


def num_lines(path: Path) -> int:
    """Return the number of whole lines of a JSON-lines file, or of its gzip copy."""
    return sum(line.endswith(b"\n") for _, line in _numbered_lines(path))


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number, from 1, and the text of each line within the limits."""
    where = visible(str(path))
    unpacked_bytes = 0
    try:
        with open_lines(path) as stream:
            for number in count(1):
                line = stream.readline(MAX_LINE_BYTES + 1)
                if len(line) > MAX_LINE_BYTES or number > MAX_LINES:
                    limits = f"{MAX_LINE_BYTES} bytes a line or {MAX_LINES} lines"
                    raise InputError(f"{where}:{number}: more than {limits}, not read")
                if isinstance(stream, gzip.GzipFile):
                    unpacked_bytes += len(line)
                    _check_unpacked(path, unpacked_bytes)
                if not line:
                    return
                yield number, line
    except (OSError, EOFError, zlib.error) as cause:
        if is_exhausted(cause):
            raise
        raise InputError(f"cannot read {where}: {cause}") from cause


def packed(path: Path) -> Path:
    """Return the name of the gzip copy of a JSON-lines file."""
    return path.with_name(f"{path.name}.gz")


def has_lines(path: Path) -> bool:
    """Return whether a JSON-lines file exists, packed or not."""
    return path.is_file() or packed(path).is_file()


def open_lines(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a JSON-lines file, or its gzip copy if only that exists, for reading."""
    if not path.exists() and packed(path).is_file():
        content = open_untrusted(packed(path), MAX_LINES_BYTES)
        stream = gzip.GzipFile(fileobj=content)
        stream.myfileobj = content  # type: ignore[assignment] (closed with the stream)
        return stream
    return open_untrusted(path, MAX_LINES_BYTES)


def pack_lines(path: Path) -> None:
    """Replace a JSON-lines file by its gzip copy; equal lines give equal bytes."""
    replace_file(packed(path), gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def unpack_lines(path: Path) -> None:
    """Restore a JSON-lines file from its gzip copy, so that it can be appended to."""
    if not path.exists() and packed(path).is_file():
        with open_lines(path) as stream:
            content = stream.read(MAX_UNPACKED_BYTES + 1)
        _check_unpacked(path, len(content))
        replace_file(path, content)
        packed(path).unlink()


def _check_unpacked(path: Path, num_bytes: int) -> None:
    if num_bytes > MAX_UNPACKED_BYTES:
        shown = visible(str(packed(path)))
        raise InputError(f"{shown}: unpacks to more than {MAX_UNPACKED_BYTES} bytes, not read")


class LineWriter:
    """A writer of a JSON-lines file; each record is on disk when `write` returns.

    It first cuts off a torn last line, which a kill may leave.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> LineWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unpack_lines(self._path)
        drop_torn_line(self._path)
        self._stream = self._path.open("ab", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, record: object) -> None:
        """Append one record and sync it; an OSError, as of a full disk, leaves nothing of it.

        Raises InputError for a line that `read_lines` would refuse.
        """
        line = memoryview(encode(record) + b"\n")
        if len(line) > MAX_LINE_BYTES:
            limit = f"more than the {MAX_LINE_BYTES} of a line"
            raise InputError(f"{self._path}: a record has {len(line)} bytes, {limit}; not stored")
        end = self._stream.seek(0, os.SEEK_END)
        try:
            with naming(self._path):
                while line:
                    line = line[self._stream.write(line) :]
                os.fsync(self._stream.fileno())
        except OSError:
            with suppress(OSError):
                self._stream.truncate(end)
            raise


def drop_torn_line(path: Path) -> None:
    """Cut the text after the last newline of a file: a write that was killed."""
    if not path.exists():
        return
    with open_untrusted(path, MAX_LINES_BYTES) as stream:
        size = end = stream.seek(0, os.SEEK_END)
        newline = -1
        while end and newline < 0:
            start = max(0, end - _BLOCK_BYTES)
            stream.seek(start)
            newline = stream.read(end - start).rfind(b"\n")
            end = start
    if end + newline + 1 != size:
        os.truncate(path, end + newline + 1)


def make_folder(path: Path) -> None:
    """Make a folder and its parents if missing; raise InputError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(os_error_sentence(cause)) from cause


def write_json(path: Path, record: Any) -> None:
    """Write one record as an indented JSON file, replacing it whole or not at all."""
    _check_finite(record, path.name)
    replace_file(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, replacing it whole or not at all; an OSError names it."""
    replace_file(path, text.encode())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, replacing it whole or not at all; an OSError names it."""
    with replacing(path) as partial:
        partial.write_bytes(content)


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of an empty file that becomes `path` if the block succeeds.

    It lies beside `path`, under a random name, so that several processes can replace `path` at a
    time. `mode` holds its permissions, less those of the umask. An OSError names `path`.
    """
    check_replaceable(path)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with naming(path):
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            yield partial
            partial.replace(path)
    except BaseException as cause:
        if isinstance(cause, OSError) and cause.filename == str(partial):
            cause.filename = str(path)
        with suppress(OSError):  # what is left of it takes room; there may be nothing
            partial.unlink()
        raise


def check_replaceable(path: Path) -> None:
    """Raise InputError for a device, pipe or socket, which a rename would turn into a file."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: a device or pipe, so it is not replaced; choose another path")


def read_json(path: Path, kind: type[T]) -> T:
    """Read the record of type `kind` from a JSON file; raise InputError if it is not valid."""
    return decode(read_untrusted(path), kind, visible(str(path)))
