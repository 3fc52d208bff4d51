"""Statistics of authors from their attempts: scores by turn, conduct, and cost."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

import numpy as np

from passnet.agent.attempts.attempt import (
    UNCHANGED_SCORE,
    Attempt,
    Evaluation,
    best_state,
    num_flips,
)
from passnet.errors import InputError
from passnet.judge.score.es import SEVERE_PENALTY, Score

FAILED_SCORE = SEVERE_PENALTY
"""The AS of a task without any match, and here of an author who evaluates or submits nothing."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Our own time in the calls of a tool, without candidate code and reference."""

    tool: str
    num_calls: int
    median_s: float
    p95_s: float


@dataclass(frozen=True)
class AuthorStats:
    """The statistics of one author, with one LLM or none, on one suite.

    Attempts that ended in an error count in `num_attempts` and `endings`, but in no score. Turns,
    tokens, seconds and bad actions (calls of tools that could not be done) are totals.

    Args:
        suite: the suite, if attempts on several are summarised.
        num_scored: attempts without an error.
        num_submitted: scored attempts that submitted something.
        num_untimed: scored attempts whose submission could not be timed at the end.
        solved_ratio: share of the scored, without the untimed, whose final score is above 1.
        tasks_solved_ratio: share of tasks that an attempt solved; a task whose scored attempts are
            all untimed is left out.
        mean_score: mean AS of the submitted states as they were evaluated. A scored attempt that
            submitted nothing counts `FAILED_SCORE`; one that was not timed is left out.
        geomean_score: the same as a geometric mean.
        geomean_final_score: AS of the same states measured anew at the end; it is lower, since the
            best of several noisy measurements promises too much.
        curve: the AS of the best state after 1, 2, 3, ... evaluations, geometric mean over the
            scored. After its end an attempt keeps its last AS; one without evaluations counts
            `FAILED_SCORE`. One without a timed evaluation so far is not in the mean; None without
            any.
        curve_untimed: the number of attempts left out for that reason.
        flipped_ratio: share of attempts that passed, failed, and passed again.
        flips_per_attempt: their mean number.
        exploit_attempts_ratio: share of attempts with an exploit at any turn or at the end.
        exploit_evaluations_ratio: share of evaluations with one; None without evaluations.
        exploits: attempts by the name of the exploit.
        cost: total of the attempts whose cost is known; None if none is.
        endings: attempts by the reason for their end.
        own_s: our own time in a turn, the tool "turn", then in each tool.
    """

    author: str
    llm: str | None
    suite: str | None
    num_attempts: int
    num_tasks: int
    num_scored: int
    num_submitted: int
    num_untimed: int
    solved_ratio: float | None
    tasks_solved_ratio: float | None
    mean_score: float | None
    geomean_score: float | None
    geomean_final_score: float | None
    curve: tuple[float | None, ...]
    curve_untimed: tuple[int, ...]
    flipped_ratio: float
    flips_per_attempt: float
    exploit_attempts_ratio: float
    exploit_evaluations_ratio: float | None
    exploits: dict[str, int]
    num_bad_actions: int
    num_turns: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    endings: dict[str, int]
    own_s: tuple[Overhead, ...]

    @property
    def name(self) -> str:
        """Return the author, with the LLM and the suite if they say more."""
        name = self.author if self.llm in (None, self.author) else f"{self.author} {self.llm}"
        return name if self.suite is None else f"{name}, {self.suite}"


def summarise(attempts: Sequence[Attempt]) -> list[AuthorStats]:
    """Return the statistics of every author on every suite, by author, LLM and suite.

    A suite of the same name and other content is another. InputError without attempts.
    """
    if not attempts:
        raise InputError("there are no attempts to summarise")
    groups: dict[tuple[str, str, str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        key = attempt.author, attempt.llm or "", attempt.suite, attempt.suite_hash
        groups[key].append(attempt)
    suites = {(suite, content) for _, _, suite, content in groups}
    num_named = Counter(suite for suite, _ in suites)
    stats = []
    for key in sorted(groups):
        suite, content = key[2:]
        name = suite if num_named[suite] == 1 else f"{suite} ({content[:8]})"
        stats.append(_summary(groups[key], name if len(suites) > 1 else None))
    return stats


def _summary(attempts: Sequence[Attempt], suite: str | None) -> AuthorStats:
    scored = [attempt for attempt in attempts if attempt.ending != "error"]
    submitted = [attempt for attempt in scored if attempt.best is not None]
    timed = [attempt for attempt in scored if attempt.untimed is None]
    solved = [attempt for attempt in timed if (attempt.final_score or 0.0) > UNCHANGED_SCORE]
    tasks, tasks_scored, tasks_timed, tasks_solved = (
        {attempt.task for attempt in group} for group in (attempts, scored, timed, solved)
    )
    num_tasks_known = len(tasks) - len(tasks_scored - tasks_timed)
    curve, curve_untimed = learning_curve(scored)
    evaluations = [evaluation for attempt in attempts for evaluation in attempt.evaluations]
    num_exploits = sum(bool(evaluation.exploits) for evaluation in evaluations)
    flips = [num_flips(attempt.evaluations) for attempt in attempts]
    costs = [attempt.cost for attempt in attempts if attempt.cost is not None]
    failed = [FAILED_SCORE] * (len(scored) - len(submitted))
    scores = [each.score for each in submitted if each.score is not None] + failed
    finals = [each.final_score for each in submitted if each.final_score is not None] + failed
    return AuthorStats(
        author=attempts[0].author,
        llm=attempts[0].llm,
        suite=suite,
        num_attempts=len(attempts),
        num_tasks=len(tasks),
        num_scored=len(scored),
        num_submitted=len(submitted),
        num_untimed=len(scored) - len(timed),
        solved_ratio=len(solved) / len(timed) if timed else None,
        tasks_solved_ratio=len(tasks_solved) / num_tasks_known if num_tasks_known else None,
        mean_score=math.fsum(scores) / len(scores) if scores else None,
        geomean_score=geometric_mean(scores) if scores else None,
        geomean_final_score=geometric_mean(finals) if finals else None,
        curve=curve,
        curve_untimed=curve_untimed,
        flipped_ratio=sum(map(bool, flips)) / len(attempts),
        flips_per_attempt=sum(flips) / len(attempts),
        exploit_attempts_ratio=sum(bool(attempt.exploits) for attempt in attempts) / len(attempts),
        exploit_evaluations_ratio=num_exploits / len(evaluations) if evaluations else None,
        exploits=_counts(name for attempt in attempts for name in attempt.exploits),
        num_bad_actions=sum(attempt.num_bad_actions for attempt in attempts),
        num_turns=sum(attempt.num_turns for attempt in attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
        cost=math.fsum(costs) if costs else None,
        seconds=math.fsum(attempt.seconds for attempt in attempts),
        endings=_counts(attempt.ending for attempt in attempts),
        own_s=_overheads(attempts),
    )


def best_so_far(evaluations: Iterable[Evaluation]) -> list[float | None]:
    """Return the AS of the best timed state after each evaluation; None while there is none.

    States are compared as for the submission (see `best_state`): a graph that was not timed in one
    of them decides nothing.
    """
    bests: list[float | None] = []
    states: list[tuple[dict[str, Score], bool]] = []
    scores: list[float | None] = []
    for evaluation in evaluations:
        states.append((evaluation.results, evaluation.is_passing and bool(evaluation.results)))
        scores.append(evaluation.score)
        best = best_state(states)
        bests.append(None if best is None else scores[best])
    return bests


def learning_curve(attempts: Sequence[Attempt]) -> tuple[tuple[float | None, ...], tuple[int, ...]]:
    """Return the AS of the best state after 1, 2, ... evaluations; the number of attempts without.

    It is the geometric mean over attempts; after its end an attempt keeps its last.
    """
    curves = [best_so_far(attempt.evaluations) or [FAILED_SCORE] for attempt in attempts]
    length = max((len(attempt.evaluations) for attempt in attempts), default=0)
    steps = [[curve[min(number, len(curve) - 1)] for curve in curves] for number in range(length)]
    scores = [[score for score in step if score is not None] for step in steps]
    means = tuple(geometric_mean(step_scores) if step_scores else None for step_scores in scores)
    return means, tuple(len(curves) - len(step_scores) for step_scores in scores)


def doublings(length: int) -> list[int]:
    """Return the numbers of evaluations that a table of a curve shows.

    Examples:
        >>> doublings(6), doublings(0)
        ([1, 2, 4, 6], [])
    """
    powers = [1 << number for number in range(length.bit_length())]
    return sorted({min(power, length) for power in (*powers, length) if power and length})


def _overheads(attempts: Sequence[Attempt]) -> tuple[Overhead, ...]:
    turns: dict[tuple[int, int], float] = defaultdict(float)
    tools: dict[str, list[float]] = defaultdict(list)
    for number, attempt in enumerate(attempts):
        for call in attempt.tool_times:
            turns[number, call.turn] += call.own_s
            tools[call.tool].append(call.own_s)
    groups = {"turn": list(turns.values()), **dict(sorted(tools.items()))} if turns else {}
    return tuple(
        Overhead(name, len(seconds), *map(float, np.percentile(seconds, (50, 95))))
        for name, seconds in groups.items()
    )


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(sorted(names)).most_common())
