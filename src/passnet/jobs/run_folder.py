"""Runs over many items that go on where they stopped: what each was begun with, and what is done.

A run is a folder with a file that says what it was begun with, a line for each item that is done,
and for most items a file of what came of them. A kill loses at most the item in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from passnet.errors import InputError
from passnet.records.serialise import (
    LineWriter,
    make_folder,
    read_json,
    read_lines,
    write_json,
    write_whole,
)

R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class JobOutcome(Generic[R]):
    """What came of an item: its record, and rows as a Parquet file, None without any."""

    record: R
    rows: bytes | None


def begin(path: Path, info: Any, resume: bool, holds: str, differs: str) -> None:
    """Write down what a run is begun with, or check that the run that is there is this one.

    Args:
        path: the file, in the folder of the run.
        info: the record of what it is begun with.
        resume: go on with a run that is there.
        holds: what the folder holds then, in words.
        differs: what to say where that is another run.

    Raises:
        InputError: there is a run and `resume` is off, or it is another one.
    """
    out = path.parent
    if not path.exists():
        make_folder(out)
        write_json(path, info)
    elif not resume:
        raise InputError(
            f"{out}: already holds {holds}; add --resume to go on, or choose another --out"
        )
    elif read_json(path, type(info)) != info:
        raise InputError(f"{out}: {differs}")


def last_records(path: Path, kind: type[R], key: Callable[[R], K]) -> dict[K, R]:
    """The records of a run, the last of each item; a torn last line is left out.

    Args:
        path: the file, which need not be there yet.
        kind: of a record.
        key: what item a record is about.
    """
    if not path.exists():
        return {}
    return {key(item): item for item in read_lines(path, kind, skip_torn=True)}


def keep_each(
    outcomes: Iterable[JobOutcome[R]],
    path: Path,
    place: Callable[[R], Path],
    num_safe: int,
    what: str,
) -> Iterator[R]:
    """Store every outcome as soon as it is there, and give its record then.

    Args:
        outcomes: of items, in any order.
        path: the file of records.
        place: where the rows that belong to a record go.
        num_safe: how many items were done before.
        what: the items in a word.

    Raises:
        InputError: the folder cannot be written to, as when the disk is full.
    """
    try:
        with LineWriter(path) as writer:
            for item in outcomes:
                if item.rows is not None:
                    target = place(item.record)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(target, item.rows)
                writer.write(item.record)
                num_safe += 1
                yield item.record
    except OSError as cause:
        raise InputError(
            f"{path.parent}: cannot be written ({cause.strerror}); {num_safe} {what} are safe, "
            "make room and go on with --resume"
        ) from cause
