"""The passes of a library judged again, on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from passnet.core.hardware import Hardware
from passnet.passes.files import Files
from passnet.passes.library.entries import EntryStatus, PassEntry
from passnet.passes.library.store import PassLibrary, PassOutcome, RangeKey, entry_range

PassJudge: TypeAlias = Callable[[RangeKey, Files], PassOutcome]
"""A judge of a pass folder on a range."""


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
    entries: Sequence[PassEntry],
    judge: PassJudge,
    hardware: Hardware,
    progress: Callable[[VerifiedPass], None] | None = None,
) -> list[VerifiedPass]:
    """Judge the passes of some entries again, each once, and record each result at once.

    A pass that no longer wins stays with its record, and is not used. A pass folder that was
    changed is an InputError.
    """
    by_code = {(entry.range, entry.code_hash): entry for entry in entries if entry.code_hash}
    verified = []
    for entry in by_code.values():
        key, files = entry_range(entry), library.files(entry)
        outcome = judge(key, files)
        after = None
        if outcome.status is not None:
            after = library.add(key, entry.author, hardware, files, outcome)
        verified.append(VerifiedPass(entry, after, outcome.error))
        if progress is not None:
            progress(verified[-1])
    library.drop_earlier()
    return verified
