"""The only serialiser: frozen dataclasses to and from JSON lines, strict, with a schema version."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from passnet.errors import InputError

SCHEMA_VERSION = 1
"""Version of every record written by this package; it grows when a field changes meaning."""

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
    """One line of JSON (no newline) for a record.

    Raises:
        ValueError: a float in it is NaN or infinite.
    """
    _check_finite(record, type(record).__name__)
    return msgspec.json.encode(record)


def decode(data: bytes | str, kind: type[T], where: str = "record") -> T:
    """The record of type `kind` that `data` holds, checked field by field.

    Raises:
        InputError: it is not JSON, or a field is missing or of another type.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        name = getattr(kind, "__name__", str(kind))
        raise InputError(f"{where}: not a valid {name}: {cause}") from cause


def read_lines(path: Path, kind: type[T], skip_torn: bool = False) -> Iterator[T]:
    """The records of a JSON-lines file, in order; blank lines are skipped.

    With `skip_torn`, so is what follows the last newline: a write that is going on or was killed.

    Raises:
        InputError: the file is missing, or a line is not a valid record (its number is named).
    """
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip() and not (skip_torn and not line.endswith(b"\n")):
                    yield decode(line, kind, f"{path}:{number}")
    except OSError as cause:
        raise InputError(f"cannot read {path}: {cause.strerror}") from cause


class LineWriter:
    """Appends records to a JSON-lines file; each one is on disk when `write` returns.

    A kill leaves at most one torn line at the end, which the next `LineWriter` on the same
    path cuts off.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> LineWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_line(self._path)
        self._stream = self._path.open("ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, record: object) -> None:
        """Append one record and wait until the operating system has it on disk."""
        self._stream.write(encode(record) + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


def drop_torn_line(path: Path) -> None:
    """Cut off what follows the last newline of a file, the rest of a write that was killed."""
    if not path.exists():
        return
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end != len(data):
        with path.open("r+b") as stream:
            stream.truncate(end)


def make_folder(path: Path) -> None:
    """Make a folder, with those above it, where it is not there yet.

    Raises:
        InputError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(f"{path}: {cause.strerror}") from cause


def write_json(path: Path, record: Any) -> None:
    """Write one record as an indented JSON file, replacing it whole or not at all."""
    _check_finite(record, path.name)
    replace_file(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, replacing it whole or not at all."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def read_json(path: Path, kind: type[T]) -> T:
    """The record of type `kind` stored in a JSON file.

    Raises:
        InputError: the file is missing or not a valid record.
    """
    try:
        data = path.read_bytes()
    except OSError as cause:
        raise InputError(f"cannot read {path}: {cause.strerror}") from cause
    return decode(data, kind, str(path))
