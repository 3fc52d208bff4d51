"""Scores over tasks: the two ways to aggregate, the columns, and the intervals."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.errors import InputError
from passnet.judge.score.es import Score
from passnet.judge.score.interval import Measured, score_intervals
from passnet.judge.score.suite_score import score_suite

FAST = Score("ok", -5, 2.0)
SLOW = Score("ok", -6, 0.5)
LOOSE = Score("ok", -3, 4.0)
LOST = Score("no_match")


def test_the_headline_weighs_tasks_and_the_pooled_form_trials() -> None:
    suite = score_suite({"a": [FAST], "b": [LOST, LOST, LOST]})
    assert math.isclose(suite.tasks["b"], 0.1)
    assert math.isclose(suite.score, math.sqrt(suite.tasks["a"] * suite.tasks["b"]))
    assert suite.score_pooled < suite.score
    assert math.isclose(suite.es[-5], math.sqrt(2.0 * 0.1))
    assert math.isclose(suite.es_pooled[-5], (2.0 * 0.1**3) ** 0.25)


def test_one_task_scores_the_same_in_both_ways() -> None:
    suite = score_suite({"a": [FAST, SLOW, LOST]})
    assert math.isclose(suite.score, suite.score_pooled)
    assert suite.es == pytest.approx(suite.es_pooled)


def test_the_columns_count_what_is_correct_at_minus_five() -> None:
    columns = score_suite({"a": [FAST, SLOW], "b": [FAST, LOOSE], "c": [LOST]}).columns
    assert columns.sample_correct == pytest.approx(1 / 3)  # only task a
    assert columns.subgraph_correct == pytest.approx(3 / 5)
    assert columns.fast_1 == pytest.approx(2 / 5)
    assert columns.geomean_speedup == pytest.approx((2 * 0.5 * 2) ** (1 / 3))


def test_nothing_correct_has_no_mean_speedup() -> None:
    assert score_suite({"a": [LOST]}).columns.geomean_speedup is None


def test_no_trials_is_an_error() -> None:
    with pytest.raises(InputError, match="no trial"):
        score_suite({})
    with pytest.raises(InputError, match="no trial"):
        score_suite({"a": []})


def measured(score: Score, spread: float = 0.1) -> Measured:
    if score.speedup is None:
        return Measured(score)
    return Measured(score, score.speedup * (1 - spread), score.speedup * (1 + spread))


def test_intervals_hold_the_score_and_grow_with_what_they_resample() -> None:
    tasks = {
        name: [measured(Score("ok", -5, 1 + 0.1 * index))] for index, name in enumerate("abcdefgh")
    }
    plain = {name: [item.score for item in items] for name, items in tasks.items()}
    value = score_suite(plain).score
    intervals = score_intervals(tasks)
    for interval in intervals.values():
        assert interval.low < value < interval.high
    widths = {name: item.high - item.low for name, item in intervals.items()}
    assert widths["repeats"] < widths["tasks"] <= widths["both"] * 1.05


def test_repeats_do_not_widen_what_was_not_measured() -> None:
    interval = score_intervals({"a": [measured(LOST)], "b": [measured(LOST)]})["both"]
    assert interval.low == pytest.approx(0.1) and interval.high == pytest.approx(0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_the_same_seed_gives_the_same_interval(seed: int) -> None:
    tasks = {"a": [measured(FAST), measured(SLOW)], "b": [measured(LOOSE)]}
    assert score_intervals(tasks, seed=seed) == score_intervals(tasks, seed=seed)


def test_the_interval_of_repeats_is_that_of_a_direct_simulation() -> None:
    import numpy as np

    tasks = {"a": [measured(FAST, 0.05), measured(SLOW, 0.2)], "b": [measured(LOOSE, 0.1)]}
    random = np.random.default_rng(1)
    draws = []
    for _ in range(400):
        drawn = {}
        for name, items in tasks.items():
            drawn[name] = []
            for item in items:
                spread = (math.log(item.high or 1) - math.log(item.low or 1)) / (2 * 1.96)
                speedup = (item.score.speedup or 1) * math.exp(spread * random.standard_normal())
                drawn[name].append(Score("ok", item.score.smallest_t, speedup))
        draws.append(score_suite(drawn).score)
    interval = score_intervals(tasks)["repeats"]
    low, high = np.quantile(draws, [0.025, 0.975])
    assert interval.low == pytest.approx(low, rel=0.02)
    assert interval.high == pytest.approx(high, rel=0.02)
