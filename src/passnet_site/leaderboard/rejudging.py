"""Entries of a leaderboard judged again, to confirm their claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.bench.environment import Environment
from passnet.bench.run import run_suite
from passnet.bench.run_record import environment_difference, run_folder
from passnet.bench.scores import is_correct
from passnet.core.jobs.run_plan import RunPlan, silent
from passnet.core.records.folders import atomic_folder
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.errors import InputError
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial
from passnet_site.leaderboard.entry import (
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

VERIFICATION_FILE = "verification.json"
MOST_DIFFERENT = 0.01
"""Largest share of trials whose correctness may differ: other processors round differently."""


@dataclass(frozen=True)
class CandidateVerification:
    """The result of judging a candidate of an entry again."""

    candidate: str
    claimed: ClaimedScore | None
    found: ClaimedScore | None

    num_compared: int
    """Trials that are unstable neither here nor in the entry."""

    num_different: int
    """Compared trials that are correct at t = -5 either here or in the entry."""

    is_confirmed: bool
    text: str


@dataclass(frozen=True)
class EntryVerification:
    """The record of an entry that was judged again, in `verification.json`."""

    schema_version: int
    entry: str

    entry_sha256: str
    """Hash of the files for which the record holds."""

    settings: RunSettings
    environment: Environment

    is_same_hardware: bool
    """True if hardware and versions are the entry's; only then are scores compared."""

    candidates: tuple[CandidateVerification, ...]

    @property
    def is_confirmed(self) -> bool:
        """True if all candidates did as the entry claims."""
        return bool(self.candidates) and all(result.is_confirmed for result in self.candidates)


def rejudge(
    folder: Path,
    suite: Suite,
    settings: RunSettings,
    work: Path,
    held_out: Suite | None = None,
    progress: Callable[[str], None] = silent,
) -> tuple[EntryVerification, list[Trial]]:
    """Judge an entry again on this machine, from its files; a run in `work` is resumed.

    Raises:
        InputError: `work` holds another run, or the entry's passes cannot be used.
        MeasureError: the judge itself failed several times.
    """
    entry, trials = read_entry(folder)
    if entry.info.settings.held_out and held_out is None:
        raise InputError(
            f"entry {entry.name} was judged with held-out shapes; name their suite with --held-out"
        )
    entries = [candidate_entry(folder, candidate, suite) for candidate in entry.info.candidates]
    plan = RunPlan(resume=True, progress=progress)
    new_trials = run_suite(suite, entries, settings, work, plan, held_out=held_out)
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
        compare(entry, trials, new_trials, is_same),
    )
    return record, new_trials


def compare(
    entry: LeaderboardEntry, there: Sequence[Trial], here: Sequence[Trial], is_same_hardware: bool
) -> tuple[CandidateVerification, ...]:
    """Compare the trials of an entry with those judged here, candidate by candidate."""
    scores = claimed_scores(here)
    trials_here = {(trial.graph, trial.candidate): trial for trial in here}
    results = []
    for name in (candidate.name for candidate in entry.info.candidates):
        pairs = [
            (trial, trials_here[trial.graph, name])
            for trial in there
            if trial.candidate == name and (trial.graph, name) in trials_here
        ]
        timed = [pair for pair in pairs if all(trial.status != "unstable" for trial in pair)]
        num_different = sum(is_correct(before) != is_correct(now) for before, now in timed)
        claim, score = entry.scores.get(name), scores.get(name)
        text = _difference(claim, score, len(timed), num_different, is_same_hardware)
        results.append(
            CandidateVerification(
                name, claim, score, len(timed), num_different, not text, text or "confirmed"
            )
        )
    return tuple(results)


def _difference(
    claim: ClaimedScore | None,
    score: ClaimedScore | None,
    num_compared: int,
    num_different: int,
    is_same_hardware: bool,
) -> str:
    """Return the reason why a candidate is not confirmed; empty if it is."""
    if num_compared == 0:
        return "no trial could be compared"
    if num_different > MOST_DIFFERENT * num_compared:
        return f"{num_different} of {num_compared} trials are not as correct here as there"
    if claim is None or score is None:
        return "no score" if claim is not score else ""
    if is_same_hardware and (claim.low > score.high or score.low > claim.high):
        return f"AS {claim.score:.3f} there and {score.score:.3f} here, with intervals apart"
    return ""


def write_verification(
    leaderboard: Path, record: EntryVerification, trials: Sequence[Trial]
) -> Path:
    """Record a verification in a leaderboard, in place of an earlier one of the entry."""
    folder = leaderboard / VERIFIED_FOLDER / record.entry
    for name in (VERIFICATION_FILE, ENTRY_TRIALS_FILE):  # the record first: it is what counts
        (folder / name).unlink(missing_ok=True)
    with atomic_folder(folder) as partial:
        TRIALS.write(partial / ENTRY_TRIALS_FILE, trials)
        write_json(partial / VERIFICATION_FILE, record)
    return folder


def read_verification(leaderboard: Path, name: str) -> tuple[EntryVerification, list[Trial]] | None:
    """Read the verification of an entry and its trials; None where the present files have none.

    Raises:
        InputError: a file cannot be read.
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
