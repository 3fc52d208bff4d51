"""What is checked of a run before it stands on a leaderboard, from its records alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from passnet.bench.leaderboard.entry import LeaderboardEntry, candidate_entry, claimed_scores
from passnet.bench.run_record import BenchRunInfo
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import InputError, PassnetError
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.findings import CATALOGUE
from passnet.judge.suite.suite import Suite
from passnet.judge.timing.estimate import self_ratio, speedup
from passnet.judge.trial import Trial
from passnet.version import __version__

LEAST_SECONDS = 0.4
"""The shortest measurement of a candidate on a graph that is accepted."""

MOST_UNSTABLE = 0.05
"""The largest share of trials that may be left out as not timed."""

MOST_SELF_TOLERANCE = 0.1
SAME = 1e-6
"""How far, relatively, a number may be from what is computed of its records again."""


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """One check: what was looked at, whether it is as it should be, and in words what is there."""

    name: str
    is_passed: bool
    text: str


def check_run(info: BenchRunInfo, trials: Sequence[Trial], suite: Suite | None) -> list[EntryCheck]:
    """All checks of a run but those of its sources; `suite` is the one of the hash it names, None
    where none is known.
    """
    return [
        _judge_version(info),
        _suite(info, suite),
        _settings(info),
        _complete(info, trials, suite),
        _steady(trials),
        _times(info, trials),
        _findings(trials),
    ]


def check_entry(
    folder: Path, entry: LeaderboardEntry, trials: Sequence[Trial], suite: Suite | None
) -> list[EntryCheck]:
    """All checks of an entry."""
    checks = check_run(entry.info, trials, suite)
    return [*checks, _sources(folder, entry, suite), _scores(entry, trials)]


def failed(checks: Sequence[EntryCheck]) -> list[str]:
    """What did not pass, in sentences."""
    return [f"{check.name}: {check.text}" for check in checks if not check.is_passed]


def _judge_version(info: BenchRunInfo) -> EntryCheck:
    there = info.environment.passnet
    is_same = there == __version__ and info.schema_version == SCHEMA_VERSION
    text = f"judged by passnet {there}, records of version {info.schema_version}"
    if not is_same:
        text += f"; here is passnet {__version__}, version {SCHEMA_VERSION}: judge it anew"
    return EntryCheck("judge", is_same, text)


def _suite(info: BenchRunInfo, suite: Suite | None) -> EntryCheck:
    known = suite is not None and suite.content_hash == info.suite_hash
    text = f"{info.suite}, {info.suite_hash[:12]}"
    text += "" if known else "; no suite here has this content, name its file with --suite"
    return EntryCheck("suite", known, text)


def _settings(info: BenchRunInfo) -> EntryCheck:
    judge, timing = info.settings.judge, info.settings.judge.timing
    wrong = []
    if timing is None or timing.seconds < LEAST_SECONDS:
        seconds = "nothing was timed" if timing is None else f"{timing.seconds:g} s"
        wrong.append(f"measure each candidate for {LEAST_SECONDS:g} s or longer ({seconds})")
    if judge.self_tolerance > MOST_SELF_TOLERANCE:
        wrong.append(
            f"a self-tolerance of at most {MOST_SELF_TOLERANCE:g} ({judge.self_tolerance:g})"
        )
    has_code = any(candidate.kind == "passes" for candidate in info.candidates)
    if has_code and info.settings.sandbox == "none":
        wrong.append("confine candidate code by a sandbox (none)")
    text = f"rules {judge.rules}, strides {judge.strides}, device {judge.device}, sandbox "
    text += info.settings.sandbox
    return EntryCheck("settings", not wrong, "; ".join(wrong) or text)


def _complete(info: BenchRunInfo, trials: Sequence[Trial], suite: Suite | None) -> EntryCheck:
    counts = Counter((trial.graph, trial.candidate) for trial in trials)
    names = [candidate.name for candidate in info.candidates]
    if suite is None:
        return EntryCheck("complete", False, "the graphs of the suite are not known here")
    tasks = {graph.name: graph.task for graph in suite.graphs}
    wanted = {(graph, name) for graph in tasks for name in names}
    missing, extra = wanted - set(counts), set(counts) - wanted
    twice = [key for key, count in counts.items() if count > 1]
    moved = [trial for trial in trials if tasks.get(trial.graph, trial.task) != trial.task]
    found = [
        f"{len(keys)} trials {words}, as {sorted(keys)[0][0]} under {sorted(keys)[0][1]}"
        for keys, words in (
            (list(missing), "are missing"),
            (list(extra), "are of no graph of the suite, or no candidate of the run"),
            (twice, "are there twice"),
            ([(trial.graph, trial.candidate) for trial in moved], "name another task"),
        )
        if keys
    ]
    text = f"{len(names)} candidates on {len(tasks)} graphs"
    return EntryCheck("complete", not found, "; ".join(found) or text)


def _steady(trials: Sequence[Trial]) -> EntryCheck:
    totals = Counter(trial.candidate for trial in trials)
    unstable = Counter(trial.candidate for trial in trials if trial.status == "unstable")
    shares = {name: unstable[name] / total for name, total in totals.items()}
    name, share = max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    text = f"at most {100 * share:.1f} % of a candidate's trials could not be timed"
    if share > MOST_UNSTABLE:
        text = (
            f"{100 * share:.1f} % of the trials of {name} could not be timed, and at most "
            f"{100 * MOST_UNSTABLE:.0f} % may; measure them again with --resume --retry"
        )
    return EntryCheck("steady", share <= MOST_UNSTABLE, text)


def _times(info: BenchRunInfo, trials: Sequence[Trial]) -> EntryCheck:
    """Whether the speedups are those of the raw times, on a machine that was quiet by these."""
    odd = [(trial, list(_odd_times(info, trial))) for trial in trials]
    wrong = [f"{t.graph} under {t.candidate}: {', '.join(texts)}" for t, texts in odd if texts]
    count = sum(trial.status == "ok" for trial in trials)
    text = f"{count} speedups agree with their raw times"
    if wrong:
        text = f"{len(wrong)} trials are not what their raw times give; {wrong[0]}"
    return EntryCheck("times", not wrong, text)


def _odd_times(info: BenchRunInfo, trial: Trial) -> Iterator[str]:
    if trial.status != "ok" or info.settings.judge.timing is None:
        return
    reference, candidate = (
        np.array(rounds, dtype=float)
        for rounds in (trial.reference_rounds_ms, trial.candidate_rounds_ms)
    )
    is_whole = reference.ndim == 2 and reference.shape == candidate.shape and reference.size > 0
    if not is_whole or reference.min() <= 0 or candidate.min() <= 0:
        yield "its raw times are missing"
        return
    found = speedup(reference, candidate, info.settings.judge.seed)
    claimed = (trial.speedup, trial.speedup_low, trial.speedup_high)
    if any(
        number is None or abs(number - again) > SAME * again
        for number, again in zip(claimed, (found.value, found.low, found.high), strict=True)
    ):
        yield f"its speedup is {trial.speedup}, and {found.value:.6f} by its raw times"
    ratio = self_ratio(reference)
    if abs(np.log(ratio)) > np.log1p(info.settings.judge.self_tolerance) + SAME:
        yield f"eager torch differs from itself by {ratio:.3f}, so that it cannot be ok"


def _findings(trials: Sequence[Trial]) -> EntryCheck:
    wrong = []
    for trial in trials:
        names = [found.name for found in trial.findings if found.name not in CATALOGUE]
        is_cheat = any(found.weight == "reject" for found in trial.findings)
        if names:
            wrong.append(f"{trial.graph} under {trial.candidate}: no finding is called {names[0]}")
        elif is_cheat != (trial.status == "cheat"):
            wrong.append(
                f"{trial.graph} under {trial.candidate}: is {trial.status}, with "
                f"{'a finding' if is_cheat else 'no finding'} that rejects"
            )
    counts = Counter(found.name for trial in trials for found in trial.findings)
    text = ", ".join(f"{count} {name}" for name, count in counts.most_common(5)) or "none"
    return EntryCheck("findings", not wrong, wrong[0] if wrong else text)


def _sources(folder: Path, entry: LeaderboardEntry, suite: Suite | None) -> EntryCheck:
    with_code = [each for each in entry.info.candidates if each.kind == "passes"]
    if suite is None and with_code:
        return EntryCheck("sources", False, "the tasks of the suite are not known here")
    for candidate in with_code:
        assert suite is not None, "seen above"
        try:
            found: CandidateEntry | None = candidate_entry(folder, candidate, suite)
        except (InputError, PassnetError) as cause:
            return EntryCheck("sources", False, str(cause))
        if found is None or found.code_hash != entry.info.code_hashes.get(candidate.name):
            return EntryCheck(
                "sources", False, f"the files of {candidate.name} are not those that were judged"
            )
    text = f"the files of {len(with_code)} candidates are those that were judged"
    return EntryCheck("sources", True, text if with_code else "baselines alone")


def _scores(entry: LeaderboardEntry, trials: Sequence[Trial]) -> EntryCheck:
    again = claimed_scores(trials)
    if set(again) != set(entry.scores):
        return EntryCheck("scores", False, "the candidates with scores are not those with trials")
    for name, claimed in entry.scores.items():
        found = again[name]
        if claimed is None or found is None:
            if claimed is not found:
                return EntryCheck("scores", False, f"{name} claims what was not timed")
            continue
        pairs = zip(
            (claimed.score, claimed.low, claimed.high),
            (found.score, found.low, found.high),
            strict=True,
        )
        if any(abs(one - other) > SAME * other for one, other in pairs):
            text = f"{name} claims AS {claimed.score:.6f}, and has {found.score:.6f}"
            return EntryCheck("scores", False, text)
    text = ", ".join(
        f"{name} {score.score:.3f}" for name, score in again.items() if score is not None
    )
    return EntryCheck("scores", True, text or "none could be timed")
