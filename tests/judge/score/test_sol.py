"""The SOL score: vectors computed by hand, and graphs without a limit."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from passnet.judge.score.es import Score
from passnet.judge.score.interval import Interval, Measured
from passnet.judge.score.sol import SolScore, rated, sol_suite


def trial(
    speedup: float, reference_ms: float | None = 5.0, sol_ms: float | None = 1.0, t: int = -5,
    spread: float | None = None,
) -> Measured:  # fmt: skip
    """A trial; `spread` is the standard deviation of its log speedup."""
    factor = None if spread is None else math.exp(1.96 * spread)
    low, high = (None, None) if factor is None else (speedup / factor, speedup * factor)
    return Measured(Score("ok", t, speedup), low, high, reference_ms, sol_ms)


FAILED = Measured(Score("compile_error"))


@pytest.mark.parametrize(
    ("speedup", "reference_ms", "sol_ms", "score", "share"),
    [
        (1.0, 5.0, 1.0, 0.5, 0.2),  # as fast as eager torch
        (5.0, 5.0, 1.0, 1.0, 1.0),  # at the limit
        (2.0, 5.0, 1.0, 8 / 11, 0.4),  # 2.5 ms: 1 / (1 + 1.5 / 4)
        (0.5, 5.0, 1.0, 4 / 13, 0.1),  # 10 ms: 1 / (1 + 9 / 4)
        (10.0, 5.0, 1.0, 1.0, 1.0),  # below the limit, within the error of its rates
        (2.0, 5.0, 0.0, 2 / 3, 0.0),  # no work that is known: s / (1 + s)
        (2.0, 1.0, 1.0, None, 1.0),  # eager torch is at the limit
        (0.5, 1.0, 2.0, None, 1.0),  # and below it
        (2.0, 5.0, None, None, None),  # an old record
    ],
)
def test_vectors(
    speedup: float, reference_ms: float, sol_ms: float | None, score: float | None,
    share: float | None,
) -> None:  # fmt: skip
    found = rated(trial(speedup, reference_ms, sol_ms))
    assert found[0] == (None if score is None else pytest.approx(score))
    assert found[1] == (None if share is None else pytest.approx(share))


def test_incorrect_trials_score_nothing_and_reach_no_share() -> None:
    for wrong in (trial(3.0, t=-4), Measured(Score("ok", None, 3.0), None, None, 5.0, 1.0), FAILED):
        assert rated(wrong) == (0.0, None)


def test_a_suite_is_the_mean_over_tasks_of_the_means_over_graphs() -> None:
    tasks = {"a": [trial(1.0), trial(5.0), FAILED], "b": [trial(2.0)]}
    found = sol_suite(tasks)
    assert found.tasks == {"a": pytest.approx(0.5), "b": pytest.approx(8 / 11)}
    assert found.score == pytest.approx((0.5 + 8 / 11) / 2)
    assert found.roofline_share == pytest.approx((0.2 + 1.0 + 0.4) / 3)


def test_a_graph_without_a_limit_is_left_out() -> None:
    at_limit = trial(1.0, reference_ms=1.0)
    assert sol_suite({"a": [trial(1.0), at_limit]}).score == 0.5
    assert sol_suite({"a": [at_limit]}) == SolScore(None, 1.0, {})


def test_an_old_record_makes_the_score_unknown() -> None:
    assert sol_suite({"a": [trial(1.0)], "b": [trial(1.0, sol_ms=None)]}).score is None
    assert sol_suite({"a": [FAILED]}).score == 0.0


def intervals(tasks: Mapping[str, Sequence[Measured]]) -> dict[str, Interval]:
    return sol_suite(tasks).intervals


def test_without_spread_only_the_choice_of_tasks_gives_an_interval() -> None:
    equal = {"a": [trial(1.0), trial(1.0, spread=0.0)], "b": [trial(5.0), FAILED]}
    assert set(intervals(equal).values()) == {Interval(0.5, 0.5)}
    assert list(intervals(equal)) == ["tasks", "repeats", "both"]
    others = {"a": [trial(1.0, spread=0.0)], "b": [trial(5.0)]}
    assert intervals(others) == {
        "tasks": Interval(0.5, 1.0),
        "repeats": Interval(0.75, 0.75),
        "both": Interval(0.5, 1.0),
    }


def test_the_interval_over_repeats_of_one_trial_has_the_scores_of_its_bounds() -> None:
    one = trial(1.5, spread=0.05)
    ends = [sol_suite({"a": [trial(bound or 1)]}).score for bound in (one.low, one.high)]
    found = intervals({"a": [one]})
    assert [found["repeats"].low, found["repeats"].high] == pytest.approx(ends, abs=0.005)
    assert found["tasks"] == Interval(*[sol_suite({"a": [one]}).score] * 2)
    assert intervals({"a": [trial(1.5, spread=0.1)]})["repeats"].low < found["repeats"].low


def test_faster_trials_move_all_intervals_up() -> None:
    def suite(factor: float) -> dict[str, list[Measured]]:
        speedups = {"a": [0.4, 1.0], "b": [1.5], "c": [2.0, 3.0], "d": [0.9]}
        return {name: [trial(factor * s, spread=0.1) for s in found] + [FAILED]
                for name, found in speedups.items()}  # fmt: skip

    slow, fast = intervals(suite(1.0)), intervals(suite(1.1))
    for name, bounds in slow.items():
        assert bounds.low < fast[name].low and bounds.high < fast[name].high


@pytest.mark.parametrize("name", ["tasks", "repeats"])
def test_intervals_hold_the_truth_as_often_as_they_say(name: str) -> None:
    random = np.random.default_rng(0)
    every = np.exp(random.normal(0.2, 0.4, 1000))
    spread = 0.1 if name == "repeats" else 0.0
    score = {speedup: rated(trial(speedup))[0] for speedup in every}
    holds = []
    for _ in range(100):
        chosen = random.choice(every, 25)
        truth = np.mean([score[speedup] for speedup in (every if name == "tasks" else chosen)])
        speedups = chosen * np.exp(spread * random.standard_normal(25))
        found = intervals({str(n): [trial(s, spread=spread)] for n, s in enumerate(speedups)})[name]
        holds.append(found.low <= truth <= found.high)
    assert 0.9 <= np.mean(holds) <= 0.99


def test_a_trial_that_is_not_correct_stays_at_nothing_in_every_draw() -> None:
    tasks = {name: [trial(3.0, t=-4, spread=0.5), FAILED] for name in "ab"}
    assert set(intervals(tasks).values()) == {Interval(0.0, 0.0)}


def test_a_graph_without_a_limit_is_in_no_draw() -> None:
    kept, at_limit = trial(2.0, spread=0.1), trial(2.0, reference_ms=1.0, spread=0.1)
    tasks = {"a": [kept], "b": [trial(1.0)]}
    more = {"a": [at_limit, kept], "b": [trial(1.0), at_limit], "c": [at_limit]}
    assert intervals(more) == intervals(tasks)


def test_without_a_score_there_is_no_interval() -> None:
    for trials in ([trial(1.0, sol_ms=None)], [trial(1.0), trial(1.0, None)], [trial(1.0, 1.0)]):
        assert intervals({"a": trials}) == {}


def test_no_speedup_is_too_uncertain() -> None:
    found = intervals({"a": [Measured(Score("ok", -5, 1.0), 1e-300, 1e300, 5.0, 1.0)]})
    assert found["repeats"].low == pytest.approx(0.0) and found["repeats"].high == 1.0
