"""The resumable folder of a run over many items.

It has a file that says what the run was begun with, a file with a record a line of every item that
is done, and for most items a file of rows. A kill loses at most the items in flight. One process
at a time works in it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from passnet.core.jobs.folder_lock import folder_lock
from passnet.core.jobs.process import JobOutcome
from passnet.core.records.serialise import (
    LineWriter,
    encode,
    has_lines,
    make_folder,
    read_json,
    read_lines,
    replace_file,
    write_json,
)
from passnet.errors import InputError, PassnetError, os_error_sentence

I = TypeVar("I")  # noqa: E741 (what a run is begun with)
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


_used: dict[Path, "RunFolder[Any, Any, Any]"] = {}
"""Used by `used_runs`. State of the process: an interrupt may come anywhere, and then the command
line reports what is on disk."""


def used_runs() -> list["RunFolder[Any, Any, Any]"]:
    """Return the folders where this process began a run or stored records, in order."""
    return list(_used.values())


@dataclass(frozen=True)
class RunFolder(Generic[I, R, K]):
    """The folder of one kind of run.

    Args:
        out: the folder, which need not be there yet.
        info_file: name of the file that says what the run was begun with.
        info: type of what that file holds.
        records_file: name of the file of records.
        record: type of a record.
        key: what item a record is about; the last record of an item counts.
        holds: what the folder holds, in words whose last letter is that of the plural: "captured
            nets".
    """

    out: Path
    info_file: str
    info: type[I]
    records_file: str
    record: type[R]
    key: Callable[[R], K]
    holds: str

    @property
    def records_path(self) -> Path:
        """Return the path of the records file."""
        return self.out / self.records_file

    @contextmanager
    def begin(self, info: I, resume: bool, continued: Callable[[I, I], I]) -> Iterator[None]:
        """Write the settings of a run, or resume the run that exists; lock the folder for the
        block.

        `continued`, given what the run that is there was begun with and `info`, gives what it goes
        on with, or raises an InputError that says what may not differ.

        Raises:
            InputError: another process works in the folder; there is a run and `resume` is off, or
                it may not go on; or the folder cannot be made.
        """
        _used[self.records_path] = self
        make_folder(self.out)
        with folder_lock(self.out):
            self._write_info(info, resume, continued)
            yield

    def _write_info(self, info: I, resume: bool, continued: Callable[[I, I], I]) -> None:
        path = self.out / self.info_file
        if path.exists():
            if not resume:
                raise InputError(
                    f"{self.out}: already holds {self.holds}; add --resume to go on, or choose "
                    "another --out"
                )
            begun = read_json(path, self.info)
            info = continued(begun, info)
            if info == begun:
                return
        elif self.records_path.exists():
            raise InputError(
                f"{self.out}: holds {self.records_file} but no {self.info_file}; choose another "
                "--out"
            )
        write_json(path, info)

    def held(self) -> str | None:
        """Return the number of records on disk in words ("1 captured net"); None without any."""
        try:
            count = self.records_path.read_bytes().count(b"\n")
        except OSError:
            return None
        return f"{count} {self.holds[: None if count > 1 else -1]}" if count else None

    def read_info(self) -> I:
        """Return the settings that the run was begun with.

        Raises:
            InputError: there is no run, or none of this version.
        """
        return read_json(self.out / self.info_file, self.info)

    def records(self) -> dict[K, R]:
        """Return the record of every finished item; skip a torn last line."""
        return last_records(self.records_path, self.record, self.key)

    def forget(self, is_stale: Callable[[R], bool]) -> None:
        """Remove stale records, so that their items run again."""
        if self.records_path.exists():
            remaining = [record for record in self.records().values() if not is_stale(record)]
            lines = b"".join(encode(record) + b"\n" for record in remaining)
            replace_file(self.records_path, lines)

    def take(self, others: Iterable[R], records: dict[K, R], is_done: Callable[[R], bool]) -> None:
        """Store records of other folders that this one lacks, or that succeeded only there.

        Raises:
            InputError: the operating system refuses something, as when the disk is full.
        """
        with self.recorder(len(records)) as record:
            for other in others:
                key = self.key(other)
                mine = records.get(key)
                if mine is None or (is_done(other) and not is_done(mine)):
                    record(other)
                    records[key] = other

    def keep(
        self,
        outcomes: Iterable[JobOutcome[R]],
        num_safe: int,
        rows_path: Callable[[R], Path] | None = None,
    ) -> Iterator[R]:
        """Store every outcome as soon as it is ready, and yield its record.

        `num_safe` items were done before; `rows_path` gives where the rows that belong to a record
        go, for runs whose items have rows.

        Raises:
            InputError: the operating system refuses something, as when the disk is full.
        """
        with self.recorder(num_safe) as record:
            for outcome in outcomes:
                if outcome.rows is not None and rows_path is not None:
                    target = rows_path(outcome.record)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    replace_file(target, outcome.rows)
                record(outcome.record)
                yield outcome.record

    @contextmanager
    def recorder(self, num_safe: int) -> Iterator[Callable[[R], None]]:
        """Yield a function that stores a record on disk before it returns.

        `num_safe` items were done before. An error that ends the block says how many are safe.

        Raises:
            InputError: the operating system refuses something, as when the disk is full.
            PassnetError: what else failed.
        """
        _used[self.records_path] = self
        try:
            with LineWriter(self.records_path) as writer:

                def record(done: R) -> None:
                    nonlocal num_safe
                    writer.write(done)
                    num_safe += 1

                yield record
        except InputError:
            raise
        except (OSError, PassnetError) as cause:
            text = os_error_sentence(cause) if isinstance(cause, OSError) else str(cause)
            kind = type(cause) if isinstance(cause, PassnetError) else InputError
            raise kind(
                f"{text}; {num_safe} {self.holds} are safe in {self.out}, go on with --resume"
            ) from cause


def unchanged(complaint: str) -> Callable[[I, I], I]:
    """Return a `continued` for `RunFolder.begin` that raises `complaint` if any setting differs."""

    def continued(begun: I, info: I) -> I:
        if begun != info:
            raise InputError(complaint)
        return begun

    return continued


def last_records(path: Path, kind: type[R], key: Callable[[R], K]) -> dict[K, R]:
    """Return the last record of each item of a file, by `key`; empty without a file.

    A torn last line is left out.
    """
    if not has_lines(path):
        return {}
    return {key(record): record for record in read_lines(path, kind, skip_torn=True)}
