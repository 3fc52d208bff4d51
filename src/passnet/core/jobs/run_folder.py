"""The resumable folder of a run over many items, in which one process works at a time.

It holds the settings, a file of records and, for most items, a file of rows. A kill loses at most
the items in flight.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from passnet.core.jobs.folder_lock import folder_lock
from passnet.core.jobs.process import JobOutcome
from passnet.core.records import serialise
from passnet.core.records.differences import first_difference
from passnet.errors import InputError, PassnetError, os_error_sentence

I = TypeVar("I")  # noqa: E741 (what a run is begun with)
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


_used: dict[Path, "RunFolder[Any, Any, Any]"] = {}
"""Runs for `used_runs`: state of the process, as an interrupt may come anywhere."""


def used_runs() -> list["RunFolder[Any, Any, Any]"]:
    """Return the folders where this process began a run or stored records, in order."""
    return list(_used.values())


COMMANDS = {
    "nets.jsonl": "extract",
    "graphs.jsonl": "dataset build",
    "profiles.jsonl": "profile",
    "trials.jsonl": "bench run",
    "attempts.jsonl": "agent run",
    "admissions.jsonl": "suite make",
    "checks.jsonl": "suite check",
    "problems.jsonl": "suite import",
    "outcomes.jsonl": "optimize audit",
    "made.jsonl": "train data",
    "verdicts.jsonl": "train judge",
    "answered.jsonl": "train answer",
    "curve.jsonl": "train sft",
    "answers.jsonl": "train evaluate",
}
"""The command whose run a folder with such a file of records holds."""


@dataclass(frozen=True)
class RunFolder(Generic[I, R, K]):
    """The folder of one kind of run.

    `info_file` holds the settings, of type `info`; `records_file` the records. `key` gives a
    record's item, whose last record counts. `holds` names the records in the plural: "captured
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
        """Write the settings of a run, or resume the existing one; lock the folder for the block.

        `continued` maps the settings on disk and `info` to those to go on with, or raises an
        InputError. So does a folder that is in use, that holds a run while `resume` is off, or
        that holds a run of another kind.
        """
        _used[self.records_path] = self
        serialise.make_folder(self.out)
        with folder_lock(self.out):
            self._write_info(info, resume, continued)
            yield

    def _write_info(self, info: I, resume: bool, continued: Callable[[I, I], I]) -> None:
        path = self.out / self.info_file
        files = () if self.records_path.exists() else COMMANDS
        if others := [file for file in files if (self.out / file).exists()]:
            raise InputError(
                f"{self.out}: holds {others[0]} of `passnet {COMMANDS[others[0]]}`, a run of "
                "another kind; choose another --out"
            )
        if path.exists():
            if not resume:
                raise InputError(
                    f"{self.out}: already holds {self.holds}; add --resume to go on, or choose "
                    "another --out"
                )
            begun = serialise.read_json(path, self.info)
            info = continued(begun, info)
            if info == begun:
                return
        elif serialise.has_lines(self.records_path):
            raise InputError(
                f"{self.out}: holds {self.records_file} but no {self.info_file}; choose another "
                "--out"
            )
        serialise.write_json(path, info)

    def held(self) -> str | None:
        """Return the number of records on disk in words ("1 captured net"); None without any."""
        try:
            count = serialise.num_lines(self.records_path)
        except (OSError, InputError):
            return None
        return f"{count} {self.holds[: None if count > 1 else -1]}" if count else None

    def read_info(self) -> I:
        """Return the settings that the run was begun with; raise InputError if there are none."""
        return serialise.read_json(self.out / self.info_file, self.info)

    def records(self) -> dict[K, R]:
        """Return the record of every finished item; skip a torn last line."""
        return last_records(self.records_path, self.record, self.key)

    def forget(self, is_stale: Callable[[R], bool]) -> None:
        """Remove stale records, so that their items run again."""
        if serialise.has_lines(self.records_path):
            serialise.unpack_lines(self.records_path)
            remaining = [record for record in self.records().values() if not is_stale(record)]
            lines = b"".join(serialise.encode(record) + b"\n" for record in remaining)
            serialise.replace_file(self.records_path, lines)

    def take(self, foreign: Iterable[R], records: dict[K, R], is_done: Callable[[R], bool]) -> None:
        """Store records of other folders that this one lacks, or that succeeded only there."""
        with self.recorder(len(records)) as store:
            for record in foreign:
                key = self.key(record)
                own = records.get(key)
                if own is None or (is_done(record) and not is_done(own)):
                    store(record)
                    records[key] = record

    def keep(
        self,
        outcomes: Iterable[JobOutcome[R]],
        num_safe: int,
        rows_path: Callable[[R], Path] | None = None,
    ) -> Iterator[R]:
        """Store every outcome as soon as it is ready, and yield its record.

        `num_safe` items were done before; `rows_path` gives the path of a record's rows.
        """
        with self.recorder(num_safe) as record:
            for outcome in outcomes:
                if outcome.rows is not None and rows_path is not None:
                    target = rows_path(outcome.record)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    serialise.replace_file(target, outcome.rows)
                record(outcome.record)
                yield outcome.record

    @contextmanager
    def recorder(self, num_safe: int) -> Iterator[Callable[[R], None]]:
        """Yield a function that stores a record on disk before it returns.

        `num_safe` items were done before; an error that ends the block says how many are safe.
        """
        _used[self.records_path] = self
        try:
            with serialise.LineWriter(self.records_path) as writer:

                def store(record: R) -> None:
                    nonlocal num_safe
                    writer.write(record)
                    num_safe += 1

                yield store
        except InputError:
            raise
        except (OSError, PassnetError) as cause:
            text = os_error_sentence(cause) if isinstance(cause, OSError) else str(cause)
            kind = type(cause) if isinstance(cause, PassnetError) else InputError
            raise kind(
                f"{text}; {num_safe} {self.holds} are safe in {self.out}, go on with --resume"
            ) from cause


def unchanged(complaint: str) -> Callable[[I, I], I]:
    """Return a `continued` for `RunFolder.begin` that raises `complaint` if any setting differs,
    with the first one that does.
    """

    def continued(begun: I, info: I) -> I:
        if begun != info:
            raise InputError(f"{complaint} ({first_difference(begun, info)})")
        return begun

    return continued


def last_records(path: Path, kind: type[R], key: Callable[[R], K]) -> dict[K, R]:
    """Return the last record of each item by `key`; empty without a file; skip a torn line."""
    if not serialise.has_lines(path):
        return {}
    return {key(record): record for record in serialise.read_lines(path, kind, skip_torn=True)}
