"""Entries of a leaderboard judged again: what comes out, and whether it confirms their claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.bench.environment import Environment
from passnet.bench.leaderboard.entry import (
    ENTRY_TRIALS_FILE,
    TRIALS,
    VERIFIED_FOLDER,
    ClaimedScore,
    LeaderboardEntry,
    candidate_entry,
    claimed_scores,
    entry_hash,
    read_entry,
)
from passnet.bench.run import run_suite
from passnet.bench.run_record import environment_difference, run_folder
from passnet.core.jobs.run_plan import RunPlan, silent
from passnet.core.records.folders import atomic_folder
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.errors import InputError
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial

VERIFICATION_FILE = "verification.json"
MOST_DIFFERENT = 0.01
"""The largest share of a candidate's trials that may be correct there and not here, or the other
way round: inputs are drawn alike, but other processors round differently."""


@dataclass(frozen=True)
class CandidateVerification:
    """How a candidate of an entry did when it was judged again.

    `num_different` trials are correct at t = -5 in one of the two and not in the other; those that
    are unstable in either are not compared.
    """

    candidate: str
    claimed: ClaimedScore | None
    found: ClaimedScore | None
    num_compared: int
    num_different: int
    is_confirmed: bool
    text: str


@dataclass(frozen=True)
class EntryVerification:
    """The record of an entry that was judged again, in `verification.json`.

    It holds for the files of the hash `entry_sha256` alone. Scores are compared where the hardware
    and versions are those of the entry, else correctness alone.
    """

    schema_version: int
    entry: str
    entry_sha256: str
    settings: RunSettings
    environment: Environment
    is_same_hardware: bool
    candidates: tuple[CandidateVerification, ...]

    @property
    def is_confirmed(self) -> bool:
        """Whether all candidates did as the entry claims."""
        return bool(self.candidates) and all(each.is_confirmed for each in self.candidates)


def rejudge(
    folder: Path,
    suite: Suite,
    settings: RunSettings,
    work: Path,
    held_out: Suite | None = None,
    progress: Callable[[str], None] = silent,
) -> tuple[EntryVerification, list[Trial]]:
    """Judge an entry again on this machine, from its files; goes on with what `work` holds.

    Raises:
        InputError: `work` holds another run, or the entry's passes cannot be used.
        MeasureError: our own machinery fails again and again.
    """
    entry, trials = read_entry(folder)
    if entry.info.settings.held_out and held_out is None:
        raise InputError(
            f"entry {entry.name} was judged with held-out shapes; name their suite with --held-out"
        )
    entries = [candidate_entry(folder, each, suite) for each in entry.info.candidates]
    found = run_suite(
        suite, entries, settings, work, RunPlan(resume=True, progress=progress), held_out=held_out
    )
    info = run_folder(work).read_info()
    is_same = environment_difference(entry.info.environment, info.environment) is None
    is_same = is_same and entry.info.environment.num_cpus == info.environment.num_cpus
    record = EntryVerification(
        SCHEMA_VERSION,
        entry.name,
        entry_hash(folder),
        info.settings,
        info.environment,
        is_same,
        compare(entry, trials, found, is_same),
    )
    return record, found


def compare(
    entry: LeaderboardEntry, there: Sequence[Trial], here: Sequence[Trial], is_same_hardware: bool
) -> tuple[CandidateVerification, ...]:
    """What trials of an entry, and those of the same graphs judged again, say of its candidates."""
    claimed, found = entry.scores, claimed_scores(here)
    again = {(trial.graph, trial.candidate): trial for trial in here}
    results = []
    for name in (candidate.name for candidate in entry.info.candidates):
        pairs = [
            (trial, again[trial.graph, name])
            for trial in there
            if trial.candidate == name and (trial.graph, name) in again
        ]
        timed = [pair for pair in pairs if all(trial.status != "unstable" for trial in pair)]
        different = sum(_is_correct(one) != _is_correct(other) for one, other in timed)
        results.append(
            _verified(name, claimed.get(name), found.get(name), len(timed), different,
                      is_same_hardware)
        )  # fmt: skip
    return tuple(results)


def _is_correct(trial: Trial) -> bool:
    return trial.status == "ok" and trial.smallest_t is not None and trial.smallest_t <= CORRECT_AT


def _verified(
    name: str,
    claimed: ClaimedScore | None,
    found: ClaimedScore | None,
    num_compared: int,
    num_different: int,
    is_same_hardware: bool,
) -> CandidateVerification:
    text = ""
    if num_compared == 0:
        text = "no trial could be compared"
    elif num_different > MOST_DIFFERENT * num_compared:
        text = f"{num_different} of {num_compared} trials are not as correct here as there"
    elif claimed is None or found is None:
        text = "no score" if claimed is not found else ""
    elif is_same_hardware and (claimed.low > found.high or found.low > claimed.high):
        text = f"AS {claimed.score:.3f} there and {found.score:.3f} here, with intervals apart"
    return CandidateVerification(
        name, claimed, found, num_compared, num_different, not text, text or "confirmed"
    )


def write_verification(
    leaderboard: Path, record: EntryVerification, trials: Sequence[Trial]
) -> Path:
    """Keep what was judged again in a leaderboard; what it had of the entry is replaced."""
    folder = leaderboard / VERIFIED_FOLDER / record.entry
    for name in (VERIFICATION_FILE, ENTRY_TRIALS_FILE):  # the record first: it is what counts
        (folder / name).unlink(missing_ok=True)
    with atomic_folder(folder) as partial:
        TRIALS.write(partial / ENTRY_TRIALS_FILE, trials)
        write_json(partial / VERIFICATION_FILE, record)
    return folder


def read_verification(leaderboard: Path, name: str) -> tuple[EntryVerification, list[Trial]] | None:
    """What a leaderboard has of an entry that was judged again, with its trials; None where it has
    nothing, or nothing of the files that the entry has now.

    Raises:
        InputError: it cannot be read.
    """
    folder = leaderboard / VERIFIED_FOLDER / name
    if not (folder / VERIFICATION_FILE).is_file():
        return None
    record = read_json(folder / VERIFICATION_FILE, EntryVerification)
    if record.schema_version != SCHEMA_VERSION or record.entry != name:
        return None
    if record.entry_sha256 != entry_hash(leaderboard / name):
        return None
    return record, list(TRIALS.read(folder / ENTRY_TRIALS_FILE))
