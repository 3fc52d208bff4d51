"""A run as the site reads it: its settings, its trials, and the sources of its passes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.bench.in_nets import PassesInNets, read_in_nets
from passnet.bench.run_record import RUN_FILE, TRIALS_FILE, BenchRunInfo, run_folder
from passnet.core.records.serialise import has_lines
from passnet.core.records.untrusted import MAX_HASHED_BYTES, open_untrusted
from passnet.errors import InputError, PassnetError
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import Suite, load_suite, only_tasks
from passnet.judge.trial import Trial
from passnet.passes.folder import is_pass_folder
from passnet_site.leaderboard.entry import LeaderboardEntry, entry_folders, read_entry
from passnet_site.leaderboard.entry_checks import check_entry, failed
from passnet_site.leaderboard.rejudging import read_verification

Standing: TypeAlias = Literal["run", "entry", "verified"]
"""The evidence of a run: a run folder here (run), an entry that was sent in with consistent
records (entry), or one that was judged again here (verified)."""

SOURCE_SUFFIXES = (".py", ".json", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".md", ".txt")
MAX_FOLDER_CHARACTERS = 200_000
"""Most characters of a pass folder that a page shows."""

MAX_FILE_CHARACTERS = 50_000
"""Most characters of one of its files, so that it leaves room for others."""

Sources: TypeAlias = Mapping[str, str]
"""The texts of the files of a pass folder, by their names."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run, or an entry of a leaderboard."""

    name: str
    info: BenchRunInfo
    trials: tuple[Trial, ...]
    standing: Standing = "run"
    note: str = ""
    """A sentence on its standing."""

    sources: dict[tuple[str, str], Sources] = field(default_factory=dict)
    """Pass folders by candidate and task, if their files are still those that were judged."""

    in_nets: tuple[PassesInNets, ...] = ()

    def nets_of(self, candidate: str) -> PassesInNets | None:
        """Return what a candidate's passes did in the nets that tasks came from, if known."""
        digest = self.info.code_hashes.get(candidate)
        return next((each for each in self.in_nets if each.code_hash == digest), None)


def is_run(path: Path) -> bool:
    """Return whether a folder holds a run with its trials."""
    return (path / RUN_FILE).is_file() and has_lines(path / TRIALS_FILE)


def read_run(path: Path, suites: "KnownSuites") -> MeasuredRun:
    """Read the run of a run folder.

    Raises:
        InputError: the run cannot be read, or has no trial.
    """
    run = run_folder(path)
    info, trials = run.read_info(), tuple(run.records().values())
    if not trials:
        raise InputError(f"{path}: holds no trial; wait until the run has some, or leave it out")
    suite = suites.of_hash(info.suite_hash)
    tasks = {trial.task for trial in trials}
    sources = _sources(info.candidates, info, suite)
    sources = {(name, task): files for (name, task), files in sources.items() if task in tasks}
    in_nets = tuple(read_in_nets(path))
    return MeasuredRun(path.resolve().name, info, trials, sources=sources, in_nets=in_nets)


def read_entries(leaderboard: Path, suites: "KnownSuites") -> list[MeasuredRun]:
    """Read the entries of a leaderboard; confirmed ones have the results of the second judging.

    Raises:
        InputError: there is no leaderboard, or an entry cannot be read or fails its checks.
    """
    runs = []
    for folder in entry_folders(leaderboard):
        entry, trials = read_entry(folder)
        suite = suites.of_hash(entry.info.suite_hash)
        problems = failed(check_entry(folder, entry, trials, suite))
        if problems:
            raise InputError(f"{folder}: cannot be shown, as checks fail: {'; '.join(problems)}")
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
            texts = [result.text for result in judged[0].candidates if not result.is_confirmed]
            note = f"sent in by {entry.by}; judged again, it was not confirmed: {'; '.join(texts)}"
        if standing == "entry":
            trials = list(map(_derived, trials))
        rooted = [
            replace(candidate, root=str(folder / candidate.root)) if candidate.root else candidate
            for candidate in info.candidates
        ]
        sources = _sources(rooted, info, suite)
        run = MeasuredRun(entry.name, info, tuple(trials), standing, note, sources, entry.in_nets)
        runs.append(run)
    return runs


def _derived(trial: Trial) -> Trial:
    """Return a trial without the times and the roofline that no check derives from raw times."""
    return replace(
        trial,
        reference_hot_ms=None,
        candidate_hot_ms=None,
        reference_cold_ms=None,
        candidate_cold_ms=None,
        roofline=None,
    )


def _claims(entry: LeaderboardEntry) -> str:
    scores = {name: score for name, score in entry.scores.items() if score is not None}
    return ", ".join(f"AS {score.score:.3f} of {name}" for name, score in scores.items())


def _sources(
    candidates: Iterable[Candidate], info: BenchRunInfo, suite: Suite | None
) -> dict[tuple[str, str], Sources]:
    """Return the files of pass folders by candidate and task; none if they are gone or changed."""
    sources: dict[tuple[str, str], Sources] = {}
    for candidate in candidates:
        if candidate.root is None or suite is None:
            continue
        try:
            parsed = parse_candidate(candidate.root, suite.tasks)
        except (PassnetError, OSError):  # no folder, or no path at all
            continue
        if parsed.code_hash == info.code_hashes.get(candidate.name):
            for task in suite.tasks:
                own = parsed.for_task(task.name)
                if own is not None and own.passes is not None:
                    sources[candidate.name, task.name] = read_sources(Path(own.passes))
    return sources


def read_sources(folder: Path) -> dict[str, str]:
    """Read the text files of a pass folder; the end of a cut one gives the size of the rest."""
    assert is_pass_folder(folder), "the folder was found as one"
    sources: dict[str, str] = {}
    remaining = MAX_FOLDER_CHARACTERS
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES or not path.is_file() or path.is_symlink():
            continue
        limit = min(remaining, MAX_FILE_CHARACTERS)
        with open_untrusted(path, MAX_HASHED_BYTES) as stream:
            text = stream.read(limit).decode(errors="replace")
        remaining -= len(text)
        num_over = path.stat().st_size - limit
        over = f"\n… {num_over:,} more bytes are not shown" if num_over > 0 else ""
        sources[str(path.relative_to(folder))] = text + over
    return sources


class KnownSuites:
    """The suites whose graphs a site knows, by content hash: shipped ones, and extra ones."""

    def __init__(self, extra: tuple[Suite, ...] = ()) -> None:
        self._by_hash = {suite.content_hash: suite for suite in extra}
        self._unread = shipped_suites()

    def of_hash(self, content_hash: str) -> Suite | None:
        """Return the suite with some content; None if it is not known."""
        while content_hash not in self._by_hash and self._unread:
            name = next(iter(self._unread))
            del self._unread[name]
            suite = load_suite(name)
            self._by_hash[suite.content_hash] = suite
        return self._by_hash.get(content_hash)

    def whole_of(self, name: str, content_hash: str, tasks: Collection[str]) -> Suite | None:
        """Return the suite of a name that has some content once cut to some tasks; None if none."""
        self.of_hash(content_hash)  # reads them all
        for suite in self._by_hash.values():
            own = [task.name for task in suite.tasks if task.name in tasks]
            if suite.name == name and own and only_tasks(suite, own).content_hash == content_hash:
                return suite
        return None
