"""The checks of a run before it stands on a leaderboard, from its records alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from passnet.bench.run_record import BenchRunInfo
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import PassnetError
from passnet.judge.suite.suite import Suite
from passnet.judge.timing.estimate import low_mean, self_ratio, speedup
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import CATALOGUE
from passnet.version import __version__
from passnet_site.leaderboard.board_settings import changed_settings
from passnet_site.leaderboard.entry import LeaderboardEntry, candidate_entry, claimed_scores

LEAST_SECONDS = 0.4
"""Shortest accepted measurement of a candidate on a graph."""

MOST_UNSTABLE = 0.05
"""Largest share of a candidate's trials that may lack times."""

MOST_SELF_TOLERANCE = 0.1

SAME = 1e-6
"""Largest relative difference between a number and its value computed anew."""


@dataclass(frozen=True, slots=True)
class EntryCheck:
    """The result of one check, in words."""

    name: str
    is_passed: bool
    text: str


def check_run(info: BenchRunInfo, trials: Sequence[Trial], suite: Suite | None) -> list[EntryCheck]:
    """Run all checks that need no sources; `suite` is None where the run's is not known."""
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
    """Run all checks of an entry."""
    checks = check_run(entry.info, trials, suite)
    return [*checks, _sources(folder, entry, suite), _scores(entry, trials)]


def failed(checks: Sequence[EntryCheck]) -> list[str]:
    """Return a sentence for each check that failed."""
    return [f"{check.name}: {check.text}" for check in checks if not check.is_passed]


def _check(name: str, problems: Sequence[str], text: str) -> EntryCheck:
    """Return a check that passes with `text` if there are no problems, and else names them."""
    return EntryCheck(name, not problems, "; ".join(problems) or text)


def _judge_version(info: BenchRunInfo) -> EntryCheck:
    version = info.environment.passnet
    is_same = version == __version__ and info.schema_version == SCHEMA_VERSION
    text = f"judged by passnet {version}, records of version {info.schema_version}"
    here = f"{text}; here is passnet {__version__}, version {SCHEMA_VERSION}: judge it anew"
    return _check("judge", [] if is_same else [here], text)


def _suite(info: BenchRunInfo, suite: Suite | None) -> EntryCheck:
    is_known = suite is not None and suite.content_hash == info.suite_hash
    text = f"{info.suite}, {info.suite_hash[:12]}"
    unknown = f"{text}; no suite here has this content, name its file with --suite"
    return _check("suite", [] if is_known else [unknown], text)


def _settings(info: BenchRunInfo) -> EntryCheck:
    judge, timing = info.settings.judge, info.settings.judge.timing
    problems = []
    if timing is None or timing.seconds < LEAST_SECONDS:
        seconds = "nothing was timed" if timing is None else f"{timing.seconds:g} s"
        problems.append(f"measure each candidate for {LEAST_SECONDS:g} s or longer ({seconds})")
    if judge.self_tolerance > MOST_SELF_TOLERANCE:
        problems.append(
            f"a self-tolerance of at most {MOST_SELF_TOLERANCE:g} ({judge.self_tolerance:g})"
        )
    if changed := ", ".join(changed_settings(info.settings)):
        problems.append(f"leave these settings of the judge as they are: {changed}")
    has_code = any(candidate.has_code for candidate in info.candidates)
    if has_code and info.settings.sandbox == "none":
        problems.append("confine candidate code by a sandbox (none)")
    text = f"rules {judge.rules}, strides {judge.strides}, device {judge.device}, sandbox "
    return _check("settings", problems, text + info.settings.sandbox)


def _complete(info: BenchRunInfo, trials: Sequence[Trial], suite: Suite | None) -> EntryCheck:
    if suite is None:
        return _check("complete", ["the graphs of the suite are not known here"], "")
    counts = Counter((trial.graph, trial.candidate) for trial in trials)
    names = [candidate.name for candidate in info.candidates]
    tasks = {graph.name: graph.task for graph in suite.graphs}
    expected = {(graph, name) for graph in tasks for name in names}
    faults = {
        "are missing": expected - set(counts),
        "are of no graph of the suite, or no candidate of the run": set(counts) - expected,
        "are there twice": {key for key, count in counts.items() if count > 1},
        "name another task": {
            (trial.graph, trial.candidate)
            for trial in trials
            if tasks.get(trial.graph, trial.task) != trial.task
        },
    }
    problems = [
        f"{len(keys)} trials {fault}, as {min(keys)[0]} under {min(keys)[1]}"
        for fault, keys in faults.items()
        if keys
    ]
    return _check("complete", problems, f"{len(names)} candidates on {len(tasks)} graphs")


def _steady(trials: Sequence[Trial]) -> EntryCheck:
    totals = Counter(trial.candidate for trial in trials)
    unstable = Counter(trial.candidate for trial in trials if trial.status == "unstable")
    shares = {name: unstable[name] / total for name, total in totals.items()}
    name, share = max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    problems = []
    if share > MOST_UNSTABLE:
        problems.append(
            f"{100 * share:.1f} % of the trials of {name} could not be timed, and at most "
            f"{100 * MOST_UNSTABLE:.0f} % may; measure them again with --resume --retry"
        )
    text = f"at most {100 * share:.1f} % of a candidate's trials could not be timed"
    return _check("steady", problems, text)


def _times(info: BenchRunInfo, trials: Sequence[Trial]) -> EntryCheck:
    """Check that times and speedups follow from the raw ones, and that the machine was quiet."""
    faults = [(trial, "; ".join(_odd_times(info, trial))) for trial in trials]
    odd = [f"{trial.graph} under {trial.candidate}: {fault}" for trial, fault in faults if fault]
    problems = [f"{len(odd)} trials are not what their raw times give; {odd[0]}"] if odd else []
    count = sum(trial.status == "ok" for trial in trials)
    return _check("times", problems, f"{count} speedups agree with their raw times")


def _odd_times(info: BenchRunInfo, trial: Trial) -> Iterator[str]:
    judge = info.settings.judge
    claims = (trial.speedup, trial.speedup_low, trial.speedup_high)
    times_ms = (trial.reference_ms, trial.candidate_ms)
    reference, candidate = (
        np.array(rounds, dtype=float)
        for rounds in (trial.reference_rounds_ms, trial.candidate_rounds_ms)
    )
    is_whole = reference.ndim == 2 and reference.shape == candidate.shape and reference.size > 0
    if is_whole:
        means = [float(low_mean(rounds.reshape(-1))) for rounds in (reference, candidate)]
        if not _agree(times_ms, means):
            yield f"a call takes {times_ms} ms, and {means} by its raw times"
    elif any(each is not None for each in (*claims, *times_ms)):
        yield "its raw times are missing"
        return
    if trial.status != "ok" or judge.timing is None:
        if any(claim is not None for claim in claims):
            yield f"it claims a speedup, and is {trial.status}"
        return
    if trial.smallest_t is None and trial.speedup is None:
        return  # wrong at every level, where no speed counts
    if not is_whole or reference.min() <= 0 or candidate.min() <= 0:
        yield "its raw times are missing"
        return
    computed = speedup(reference, candidate, judge.seed)
    if not _agree(claims, (computed.value, computed.low, computed.high)):
        yield f"its speedup is {trial.speedup}, and {computed.value:.6f} by its raw times"
    ratio = self_ratio(reference)
    if abs(np.log(ratio)) > np.log1p(judge.self_tolerance) + SAME:
        yield f"eager torch differs from itself by {ratio:.3f}, so that it cannot be ok"


def _agree(claims: Sequence[float | None], computed: Sequence[float]) -> bool:
    pairs = zip(claims, computed, strict=True)
    return all(
        claim is not None and abs(claim - number) <= SAME * abs(number) for claim, number in pairs
    )


def _findings(trials: Sequence[Trial]) -> EntryCheck:
    problems = []
    for trial in trials:
        unknown = [finding.name for finding in trial.findings if finding.name not in CATALOGUE]
        is_rejected = any(finding.weight == "reject" for finding in trial.findings)
        where = f"{trial.graph} under {trial.candidate}"
        if unknown:
            problems.append(f"{where}: no finding is called {unknown[0]}")
        elif is_rejected != (trial.status == "cheat"):
            number = "a" if is_rejected else "no"
            problems.append(f"{where}: is {trial.status}, with {number} finding that rejects")
    counts = Counter(finding.name for trial in trials for finding in trial.findings)
    text = ", ".join(f"{count} {name}" for name, count in counts.most_common(5)) or "none"
    return _check("findings", problems[:1], text)


def _sources(folder: Path, entry: LeaderboardEntry, suite: Suite | None) -> EntryCheck:
    with_code = [candidate for candidate in entry.info.candidates if candidate.has_code]
    if not with_code:
        return _check("sources", [], "baselines alone")
    if suite is None:
        return _check("sources", ["the tasks of the suite are not known here"], "")
    problems = []
    for candidate in with_code:
        try:
            code_hash = candidate_entry(folder, candidate, suite).code_hash
        except PassnetError as cause:
            problems.append(str(cause))
            continue
        if code_hash != entry.info.code_hashes.get(candidate.name):
            problems.append(f"the files of {candidate.name} are not those that were judged")
    text = f"the files of {len(with_code)} candidates are those that were judged"
    return _check("sources", problems[:1], text)


def _scores(entry: LeaderboardEntry, trials: Sequence[Trial]) -> EntryCheck:
    computed = claimed_scores(trials)
    problems = []
    if set(computed) != set(entry.scores):
        problems.append("the candidates with scores are not those with trials")
    for name, claim in entry.scores.items():
        score = computed.get(name)
        if claim is None or score is None:
            if claim is not score:
                problems.append(f"{name} claims a score without times")
        elif not _agree(astuple(claim), astuple(score)):
            problems.append(f"{name} claims AS {claim.score:.6f}, and has {score.score:.6f}")
    scored = [f"{name} {score.score:.3f}" for name, score in computed.items() if score is not None]
    return _check("scores", problems[:1], ", ".join(scored) or "none could be timed")
