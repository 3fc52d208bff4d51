"""A run as the site reads it: what was measured, its trials, and the sources of its passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.bench.leaderboard.entry import LeaderboardEntry, entry_folders, read_entry
from passnet.bench.leaderboard.entry_checks import check_entry, failed
from passnet.bench.leaderboard.rejudging import read_verification
from passnet.bench.run_record import RUN_FILE, TRIALS_FILE, BenchRunInfo, run_folder
from passnet.core.records.serialise import has_lines
from passnet.errors import InputError, PassnetError
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.suite.suite import Suite, load_suite, shipped_suites
from passnet.judge.trial import Trial
from passnet.passes.folder import is_pass_folder

Standing: TypeAlias = Literal["run", "entry", "verified"]
"""run: a run folder that was given. entry: sent in, and checked from its records alone. verified:
sent in, and judged again by whom this site is from."""

SOURCE_SUFFIXES = (".py", ".json", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".md", ".txt")
MAX_FOLDER_CHARACTERS = 200_000
"""Text of a pass folder that a page shows."""

Sources: TypeAlias = Mapping[str, str]
"""The text of the files of a pass folder, by their names in it."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run, or an entry of a leaderboard.

    `sources` has the pass folders by candidate and task, as far as their files are there and those
    that were judged. `note` says what a reader should know of its standing.
    """

    name: str
    info: BenchRunInfo
    trials: tuple[Trial, ...]
    standing: Standing = "run"
    note: str = ""
    sources: dict[tuple[str, str], Sources] = field(default_factory=dict)

    def template(self, candidate: str) -> Candidate | None:
        """Return a candidate by its name."""
        found = (each for each in self.info.candidates if each.name == candidate)
        return next(found, None)


def is_run(path: Path) -> bool:
    """Return whether a folder holds a run with its trials."""
    return (path / RUN_FILE).is_file() and has_lines(path / TRIALS_FILE)


def read_run(path: Path, suites: "KnownSuites") -> MeasuredRun:
    """Read the run of a run folder.

    Raises:
        InputError: it holds none that can be read, or no trial.
    """
    run = run_folder(path)
    info, trials = run.read_info(), tuple(run.records().values())
    if not trials:
        raise InputError(f"{path}: holds no trial; wait until the run has some, or leave it out")
    suite = suites.of_hash(info.suite_hash)
    tasks = {trial.task for trial in trials}
    sources = {
        (candidate.name, task): files
        for candidate in info.candidates
        for task, files in folders_of(candidate, info, suite).items()
        if task in tasks
    }
    return MeasuredRun(path.resolve().name, info, trials, sources=sources)


def read_entries(leaderboard: Path, suites: "KnownSuites") -> list[MeasuredRun]:
    """Read the entries of a leaderboard; confirmed ones have the results of the second judging.

    Raises:
        InputError: there is no leaderboard, or an entry that cannot be read or does not hold.
    """
    runs = []
    for folder in entry_folders(leaderboard):
        entry, trials = read_entry(folder)
        suite = suites.of_hash(entry.info.suite_hash)
        problems = failed(check_entry(folder, entry, trials, suite))
        if problems:
            raise InputError(
                f"{folder}: does not hold, so that it can be on no page: {'; '.join(problems)}"
            )
        judged = read_verification(leaderboard, entry.name)
        info = entry.info
        standing: Standing = "entry"
        note = f"sent in by {entry.by}; its records hold, and nobody else has judged it"
        if judged is not None and judged[0].is_confirmed:
            record, trials = judged
            info = replace(info, environment=record.environment, settings=record.settings)
            standing = "verified"
            note = f"sent in by {entry.by}, and judged again here: {_claims(entry)} was claimed"
        elif judged is not None:
            texts = [each.text for each in judged[0].candidates if not each.is_confirmed]
            note = f"sent in by {entry.by}; judged again, it was not confirmed: {'; '.join(texts)}"
        rooted = [_rooted(folder, candidate) for candidate in info.candidates]
        sources = {
            (candidate.name, task): files
            for candidate in rooted
            for task, files in folders_of(candidate, info, suite).items()
        }
        runs.append(MeasuredRun(entry.name, info, tuple(trials), standing, note, sources))
    return runs


def _claims(entry: LeaderboardEntry) -> str:
    scores = {name: score for name, score in entry.scores.items() if score is not None}
    return ", ".join(f"AS {score.score:.3f} of {name}" for name, score in scores.items())


def _rooted(folder: Path, candidate: Candidate) -> Candidate:
    return replace(candidate, root=str(folder / candidate.root)) if candidate.root else candidate


def folders_of(candidate: Candidate, info: BenchRunInfo, suite: Suite | None) -> dict[str, Sources]:
    """Return the files of a candidate's pass folders by task; none if they are gone or changed."""
    if candidate.root is None or suite is None or not Path(candidate.root).is_dir():
        return {}
    try:
        entry = parse_candidate(candidate.root, suite.tasks)
    except PassnetError:
        return {}
    if entry.code_hash != info.code_hashes.get(candidate.name):
        return {}
    found = {task.name: entry.for_task(task.name) for task in suite.tasks}
    return {
        task: read_sources(Path(each.passes))
        for task, each in found.items()
        if each is not None and each.passes is not None
    }


def read_sources(folder: Path) -> dict[str, str]:
    """Read the text files of a pass folder, up to the size that a page shows."""
    assert is_pass_folder(folder), "the folder was found as one"
    sources: dict[str, str] = {}
    remaining = MAX_FOLDER_CHARACTERS
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES or not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as stream:
            text = stream.read(remaining).decode(errors="replace")
        sources[str(path.relative_to(folder))] = text
        remaining -= len(text)
        if remaining <= 0:
            break
    return sources


class KnownSuites:
    """The suites that a site can name the graphs of, by their content: shipped, or given."""

    def __init__(self, given: tuple[Suite, ...] = ()) -> None:
        self._by_hash = {suite.content_hash: suite for suite in given}
        self._unread = shipped_suites()

    def of_hash(self, content_hash: str) -> Suite | None:
        """Return the suite with some content; None if it is not known."""
        while content_hash not in self._by_hash and self._unread:
            name = next(iter(self._unread))
            del self._unread[name]
            suite = load_suite(name)
            self._by_hash[suite.content_hash] = suite
        return self._by_hash.get(content_hash)
