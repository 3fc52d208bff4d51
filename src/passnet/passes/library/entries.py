"""A library of judged passes as it is read: its entries, and the passes that fit a machine.

A library is a folder::

    passes/DIGEST/record.json    what was replaced, on what, by whom, and how it did
    passes/DIGEST/trial.json     the judge's record of it, if it was run
    passes/DIGEST/settings.json  the settings of the judge
    passes/DIGEST/folder/        the pass folder, if there is one

An entry never changes, as its name is the hash of its record; a pass that is judged again gets a
further entry.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.core.hardware import Hardware
from passnet.core.records.serialise import SCHEMA_VERSION, encode, read_json
from passnet.core.terminal.visible_text import visible
from passnet.errors import InputError, did_you_mean, neighbours
from passnet.passes.folder import hash_folders

_log = logging.getLogger(__name__)

ENTRIES = "passes"
RECORD_FILE = "record.json"
TRIAL_FILE = "trial.json"
SETTINGS_FILE = "settings.json"
PASS_FOLDER = "folder"
SHIPPED = "shipped_library"

EntryStatus: TypeAlias = Literal["wins", "slower", "wrong", "failed", "nothing"]
"""wins: right, and faster with the whole of its interval. slower: right, but not surely faster.
wrong: other values, at t = -5. failed: it did not run, matches nowhere, or cheats. nothing: the
author wrote none."""

EntryOrigin: TypeAlias = Literal["here", "elsewhere"]
"""The judge of an entry: the owner of the library, or another whose entries were merged."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PassEntry:
    """The result of one author's pass for one range of ops on one machine.

    Args:
        digest: SHA-256 of all other fields; the name of its folder.
        range: fingerprint of the range: its ops, literals, and the forms of its arguments.
        program: the range as a graph.
        tensors: the specs of its arguments, as JSON.
        ops: what the range calls, in order, without what lays out its arguments.
        forms: dtype and shape of each argument; all are contiguous.
        num_layouts: how many of the first ops only give arguments the strides of the net.
        code_hash: SHA-256 of the pass folder, empty where there is none.
        judged: when, in UTC.
        passnet: the version that judged.
        error: what went wrong, or which output differs.
        speedup: eager torch's time over the pass's, with the bounds of its 95 % interval.
    """

    schema_version: int
    digest: str
    range: str
    program: str
    tensors: str
    ops: tuple[str, ...]
    forms: tuple[str, ...]
    num_layouts: int
    hardware: Hardware
    author: str
    code_hash: str
    origin: EntryOrigin
    judged: str
    passnet: str
    status: EntryStatus
    error: str | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None

    @property
    def pass_key(self) -> tuple[str, Hardware, str, str]:
        """The fields that entries of one pass on one machine share."""
        return self.range, self.hardware, self.author, self.code_hash

    @property
    def saved_ms(self) -> float:
        """Least milliseconds that it saves of a call, by the lower bound of its speedup."""
        if self.status != "wins":
            return 0.0
        return saved_ms(self.reference_ms, self.speedup_low)


def saved_ms(reference_ms: float | None, speedup_low: float | None) -> float:
    """Return the least milliseconds that a pass saves: none if its interval reaches below 1.

    Examples:
        >>> saved_ms(2.0, 1.25), saved_ms(2.0, 0.99), saved_ms(None, None)
        (0.3999999999999999, 0.0, 0.0)
    """
    if reference_ms is None or speedup_low is None:
        return 0.0
    return max(0.0, reference_ms * (1 - 1 / speedup_low))


def sealed(entry: PassEntry) -> PassEntry:
    """Return the entry with its digest."""
    bare = encode(replace(entry, digest=""))
    return replace(entry, digest=hashlib.sha256(bare).hexdigest())


def has_digest(entry: PassEntry, digest: str) -> bool:
    """Return whether an entry claims a digest, and its fields have it."""
    return entry.digest == digest == sealed(entry).digest


def all_entries(folder: Path) -> list[PassEntry]:
    """Read a library's entries, by name; raise InputError if it is missing or a record damaged.

    What was changed after it was written is left out, with a warning.
    """
    entries = (_read_entry(folder, name) for name in entry_names(folder))
    return [entry for entry in entries if entry is not None]


def shipped_library() -> Path | None:
    """Return the library that comes with passnet; None where it was left out."""
    package = Path(__file__).parents[2] / SHIPPED
    folder = package if package.is_dir() else Path(__file__).parents[4] / "library"
    return folder if (folder / ENTRIES).is_dir() else None


def entry_names(folder: Path) -> list[str]:
    """Return the names of all entries; raise InputError if there is no library."""
    try:
        names = [path.name for path in (folder / ENTRIES).iterdir()]
    except OSError as cause:
        reason = f"no library of passes, as it has no folder {ENTRIES}"
        if not folder.exists():
            hint = did_you_mean(str(folder), neighbours(folder))
            reason = f"no such folder, so no library of passes{hint}"
        raise InputError(f"{folder}: {reason}; passnet optimize makes one") from cause
    return sorted(name for name in names if _DIGEST.fullmatch(name))


def _read_entry(folder: Path, name: str) -> PassEntry | None:
    """Read an entry; None where it was changed, or another process has just removed it."""
    path = folder / ENTRIES / name / RECORD_FILE
    if not path.parent.is_dir():
        return None
    entry = read_record(path)
    if has_digest(entry, name):
        return entry
    text = f"{path}: entry {name[:12]} was changed after it was written, so it is left out"
    _log.warning("%s", visible(text))
    return None


def read_record(path: Path) -> PassEntry:
    """Read a record; raise InputError if it is no record, or one of another passnet."""
    entry = read_json(path, PassEntry)
    if entry.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{path}: version {entry.schema_version}, this passnet reads {SCHEMA_VERSION}; remove "
            "the folder, or install the passnet that wrote it"
        )
    return entry


def latest(entries: Iterable[PassEntry]) -> list[PassEntry]:
    """Return the entry that counts for each pass and machine: the last judged here, or the last."""
    by_pass: dict[object, PassEntry] = {}
    for entry in entries:
        before = by_pass.setdefault(entry.pass_key, entry)
        by_pass[entry.pass_key] = max(
            before, entry, key=lambda rival: (rival.origin == "here", rival.judged)
        )
    return list(by_pass.values())


def winning(entries: Iterable[PassEntry], hardware: Hardware) -> list[PassEntry]:
    """Return the best pass for each range, judged here on some hardware; largest ranges first."""
    return best_passes(entry for entry in latest(entries) if entry.hardware == hardware)


def best_passes(entries: Iterable[PassEntry]) -> list[PassEntry]:
    """Return the best pass for each range, of those judged here; largest ranges first.

    Passes compare by the lower bound of their speedup, which does not depend on how fast the
    machine was when each was judged.
    """
    best: dict[str, PassEntry] = {}
    for entry in entries:
        if entry.origin == "here" and entry.saved_ms > 0:
            rival = best.setdefault(entry.range, entry)
            best[entry.range] = max(rival, entry, key=lambda rival: rival.speedup_low or 0.0)
    return sorted(best.values(), key=lambda entry: (-len(entry.ops), -entry.saved_ms, entry.range))


def entry_folder(folder: Path, entry: PassEntry) -> Path:
    """Return the pass folder of an entry; raise InputError if it was changed since."""
    path = folder / ENTRIES / entry.digest / PASS_FOLDER
    if not path.is_dir() or hash_folders([path]) != entry.code_hash:
        raise InputError(
            f"{path}: is not what was judged; remove it by `passnet library remove {folder} "
            f"{entry.digest[:12]}`"
        )
    return path


def winning_folders(folder: Path, hardware: Hardware) -> Sequence[Path]:
    """Return the pass folders that fit some hardware, in the order to apply them."""
    return [entry_folder(folder, entry) for entry in winning(all_entries(folder), hardware)]
