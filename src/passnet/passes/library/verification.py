"""The passes of a library judged again, on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from passnet.core.hardware import this_hardware
from passnet.judge.desk.desk import JudgeDesk
from passnet.optimizer.choose.judging import judge_files
from passnet.passes.library.entries import EntryStatus, PassEntry
from passnet.passes.library.store import PassLibrary, entry_range, trial_status


@dataclass(frozen=True, slots=True)
class VerifiedPass:
    """How a pass did before, and does here and now; `after` is None where the machine was too busy
    to tell, and the entry then stays as it is.
    """

    entry: PassEntry
    after: PassEntry | None
    error: str | None = None

    @property
    def is_used(self) -> bool:
        """Whether it is used on this machine."""
        return self.after is not None and self.after.saved_ms > 0

    @property
    def is_wrong(self) -> bool:
        """Whether it won before, and now computes something else, or fails."""
        statuses: tuple[EntryStatus, ...] = ("wrong", "failed")
        return (
            self.entry.status == "wins" and self.after is not None and self.after.status in statuses
        )


def verify_library(
    library: PassLibrary,
    entries: Sequence[PassEntry],
    evaluator: JudgeDesk,
    progress: Callable[[VerifiedPass], None] | None = None,
) -> list[VerifiedPass]:
    """Judge the passes of some entries of a library again, and keep what comes of it.

    One that no longer wins stays with its record, and is not used. One that was judged on several
    machines is judged once. Every result is kept at once.

    Raises:
        InputError: a pass folder is not what was judged.
    """
    settings = evaluator.settings
    hardware = this_hardware(settings.num_threads, settings.judge.device)
    by_code = {(entry.range, entry.code_hash): entry for entry in entries if entry.code_hash}
    verified = []
    for entry in by_code.values():
        key = entry_range(entry)
        judged = judge_files(evaluator, key, library.files(entry))
        after = None
        if judged.trial is not None and trial_status(judged.trial) is not None:
            after = library.add(
                key, entry.author, hardware, judged.files, judged.trial, settings=settings
            )
        error = judged.error or (judged.trial.error if judged.trial else None)
        verified.append(VerifiedPass(entry, after, error))
        if progress is not None:
            progress(verified[-1])
    library.drop_earlier()
    return verified
