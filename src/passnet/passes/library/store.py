"""A library of judged passes as it is written: entries added, merged, removed and judged again.

An entry is written to a folder and renamed, so that neither concurrent writers nor a killed one
lose anything.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from passnet.core.hardware import Hardware
from passnet.core.records.folders import check_free
from passnet.core.records.serialise import SCHEMA_VERSION, encode, make_folder, write_json
from passnet.errors import InputError, naming, os_error_sentence
from passnet.graph.canonical import canonical_lines, fingerprints, op_sequence
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.render import render_program
from passnet.passes.files import Files, read_files, write_files
from passnet.passes.folder import hash_folders
from passnet.passes.library.entries import (
    ENTRIES,
    PASS_FOLDER,
    RECORD_FILE,
    EntryStatus,
    PassEntry,
    all_entries,
    entry_folder,
    latest,
    sealed,
)
from passnet.version import __version__

_PARTIAL = ".partial-"
_STALE_S = 3600.0
"""Age from which the folder of a killed writer is removed."""


@dataclass(frozen=True, slots=True)
class RangeKey:
    """A range as a graph and its fingerprint; the first `num_layouts` ops lay out arguments."""

    fingerprint: str
    graph: Graph
    num_layouts: int = 0

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops of the range, in order."""
        return op_sequence(self.graph.program)[self.num_layouts :]


def range_key(graph: Graph, num_layouts: int = 0) -> RangeKey:
    """Return the key of a range; raise InputError if an argument has no shape and dtype."""
    full = fingerprints(graph).full
    if full is None:
        raise InputError("the arguments of a range have no shapes and dtypes")
    return RangeKey(full, graph, num_layouts)


def argument_forms(graph: Graph) -> tuple[str, ...]:
    """Return dtype and shape of each argument in the order of first use."""
    specs = {spec.name: spec for spec in graph.tensors}
    return tuple(
        f"{specs[name].dtype}{list(specs[name].shape)}"
        for name in canonical_lines(graph.program)[2]
    )


def entry_range(entry: PassEntry) -> RangeKey:
    """Return the range of an entry; raise InputError if its program is unreadable or another."""
    where = f"entry {entry.digest[:12]}"
    key = range_key(graph_from_row(entry.program, entry.tensors, where), entry.num_layouts)
    is_within = 0 <= entry.num_layouts < len(key.graph.program.ops)
    if not is_within or (key.fingerprint, key.ops) != (entry.range, entry.ops):
        raise InputError(f"{where}: its record names another range than its program is")
    return key


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """The result of judging a pass folder on a range; no `status` if the machine was too busy.

    `speedup`, eager torch's time over the pass's, has the bounds of its 95 % interval. `records`
    are the judge's own, kept as JSON beside the entry, by file name.
    """

    status: EntryStatus | None
    error: str | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None
    records: Mapping[str, Any] = field(default_factory=dict)


PassOrder: TypeAlias = tuple[PassEntry, RangeKey, Files]
"""A pass to judge: its entry, the range, and the files."""

_OUTCOME_FIELDS = tuple(field.name for field in fields(PassOutcome) if field.name != "records")


@dataclass(frozen=True, slots=True)
class PassLibrary:
    """The library in a folder, which need not be there before the first pass is added."""

    folder: Path

    def entries(self) -> list[PassEntry]:
        """Return the entry that counts for each pass and machine, in the order of their names."""
        return latest(self._all())

    def files(self, entry: PassEntry) -> Files:
        """Return an entry's files; raise InputError if they were changed after it was judged."""
        return read_files(entry_folder(self.folder, entry))

    def add(
        self,
        key: RangeKey,
        author: str,
        hardware: Hardware,
        files: Mapping[str, str],
        outcome: PassOutcome,
    ) -> PassEntry:
        """Record a judged pass (`files` may be empty) and return its entry, or raise InputError."""
        if outcome.status is None:
            raise InputError("a trial of a machine that was too busy is no record of a pass")
        entry = PassEntry(
            SCHEMA_VERSION,
            digest="",
            range=key.fingerprint,
            program=render_program(key.graph.program),
            tensors=encode(key.graph.tensors).decode(),
            ops=key.ops,
            forms=argument_forms(key.graph),
            num_layouts=key.num_layouts,
            hardware=hardware,
            author=author,
            code_hash="",
            origin="here",
            judged=datetime.now(UTC).isoformat(),
            passnet=__version__,
            **{name: getattr(outcome, name) for name in _OUTCOME_FIELDS},
        )
        return self._put(entry, files, outcome.records)

    def merge(self, source: Path) -> int:
        """Copy another library's passes, unused until judged here; return how many are new."""
        digests = {entry.digest for entry in self._all()}
        num_new = 0
        for entry in latest(all_entries(source)):
            foreign = sealed(replace(entry, origin="elsewhere"))
            if entry.code_hash and not digests & {entry.digest, foreign.digest}:
                self._put(foreign, PassLibrary(source).files(entry), {})
                num_new += 1
        return num_new

    def export(self, out: Path, entries: Sequence[PassEntry]) -> None:
        """Write some entries, as they are, to a new library; raise InputError if `out` is taken."""
        check_free(out)
        copy, left_out = PassLibrary(out), shutil.ignore_patterns("__pycache__")
        for entry in entries:
            if entry.code_hash:
                entry_folder(self.folder, entry)
            with copy._partial() as partial:
                source = self.folder / ENTRIES / entry.digest
                shutil.copytree(source, partial, ignore=left_out, dirs_exist_ok=True)
                _rename(partial, out / ENTRIES / entry.digest)

    def orders(self, entries: Iterable[PassEntry]) -> list[PassOrder]:
        """Return the passes of some entries, each once; raise InputError if one was changed."""
        by_code = {(entry.range, entry.code_hash): entry for entry in entries if entry.code_hash}
        return [(entry, entry_range(entry), self.files(entry)) for entry in by_code.values()]

    def remove(self, entries: Iterable[PassEntry]) -> None:
        """Remove some entries with all earlier ones of the same passes on the same machines."""
        passes = {entry.pass_key for entry in entries}
        for entry in self._all():
            if entry.pass_key in passes:
                self._drop(entry)

    def drop_earlier(self) -> None:
        """Remove the entries that no longer count, as their passes were judged again."""
        entries = self._all()
        current = {entry.digest for entry in latest(entries)}
        for entry in entries:
            if entry.digest not in current:
                self._drop(entry)

    def _all(self) -> list[PassEntry]:
        return all_entries(self.folder) if (self.folder / ENTRIES).is_dir() else []

    def _put(
        self, entry: PassEntry, files: Mapping[str, str], records: Mapping[str, Any]
    ) -> PassEntry:
        """Write an entry, with the hash of its files and its digest."""
        with self._partial() as partial:
            if files:
                write_files(files, partial / PASS_FOLDER)
                entry = replace(entry, code_hash=hash_folders([partial / PASS_FOLDER]))
            for name, record in records.items():
                write_json(partial / name, record)
            entry = sealed(entry)
            write_json(partial / RECORD_FILE, entry)
            _rename(partial, self.folder / ENTRIES / entry.digest)
        return entry

    @contextmanager
    def _partial(self) -> Iterator[Path]:
        """Open a folder to write an entry to; remove stale ones of killed writers."""
        entries = self.folder / ENTRIES
        make_folder(entries)
        for path in entries.glob(f"{_PARTIAL}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE_S:
                    shutil.rmtree(path)
        try:
            with naming(self.folder):
                partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=entries))
                try:
                    yield partial
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
        except OSError as cause:
            raise InputError(os_error_sentence(cause)) from cause

    def _drop(self, entry: PassEntry) -> None:
        """Remove an entry: its name first, so that none is ever there in part."""
        # another process may have removed it
        with self._partial() as partial, suppress(FileNotFoundError):
            (self.folder / ENTRIES / entry.digest).rename(partial / "dropped")


def _rename(partial: Path, target: Path) -> None:
    """Name a finished folder; an equal one that has the name already stays."""
    partial.chmod(0o755)  # mkdtemp makes it for one user alone
    try:
        partial.rename(target)
    except OSError:
        if not target.is_dir():
            raise


PassJudge: TypeAlias = Callable[[Sequence[PassOrder]], Iterable[tuple[PassEntry, PassOutcome]]]
"""A judge of many passes, in any order."""


@dataclass(frozen=True, slots=True)
class VerifiedPass:
    """An entry, and the entry of the same pass judged here and now."""

    entry: PassEntry

    after: PassEntry | None
    """None where the machine was too busy to tell; the old entry then stays as it is."""

    error: str | None = None

    @property
    def is_used(self) -> bool:
        """Return whether the pass is used on this machine."""
        return self.after is not None and self.after.saved_ms > 0

    @property
    def is_wrong(self) -> bool:
        """Return whether the pass won before, and now computes something else or fails."""
        statuses: tuple[EntryStatus, ...] = ("wrong", "failed")
        return (
            self.entry.status == "wins" and self.after is not None and self.after.status in statuses
        )


def verify_library(
    library: PassLibrary,
    orders: Sequence[PassOrder],
    judge: PassJudge,
    hardware: Hardware,
    progress: Callable[[VerifiedPass], None] | None = None,
) -> list[VerifiedPass]:
    """Judge passes, of this library or of others, and record each result in it at once.

    A pass that does not win here stays with its record, and is not used.
    """
    verified = []
    of_entry = {entry.digest: (key, files) for entry, key, files in orders}
    for entry, outcome in judge(orders):
        key, files = of_entry[entry.digest]
        after = None
        if outcome.status is not None:
            after = library.add(key, entry.author, hardware, files, outcome)
        verified.append(VerifiedPass(entry, after, outcome.error))
        if progress is not None:
            progress(verified[-1])
    library.drop_earlier()
    return verified
