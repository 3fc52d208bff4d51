"""AS64: golden vectors of trials that are as near to float64 as eager torch."""

import math

import pytest

from passnet.judge.score.es import Score
from passnet.judge.score.suite_score import score_suite

VECTORS = [
    # smallest_t, is_near, speedup, AS, AS64
    (-5, False, 1.0, 0.9981, 0.9981),
    (-4, True, 1.0, 0.6781, 0.9981),
    (-4, False, 1.0, 0.6781, 0.6781),
    (-3, True, 1.0, 0.4607, 0.9981),
    (-1, True, 1.0, 0.2298, 0.9981),
    (-1, True, 2.0, 0.2952, 1.9950),
    (-6, True, 1.0, 0.9985, 0.9985),
    (None, True, 1.0, 0.1472, 0.1472),
]


@pytest.mark.parametrize(("smallest_t", "is_near", "speedup", "score", "score_float64"), VECTORS)
def test_a_trial_as_near_as_eager_torch_counts_as_correct(
    smallest_t: int | None, is_near: bool, speedup: float, score: float, score_float64: float
) -> None:
    suite = score_suite({"a": [Score("ok", smallest_t, speedup, is_near)]})
    assert suite.score == pytest.approx(score, abs=6e-5)
    assert suite.score_float64 == pytest.approx(score_float64, abs=6e-5)
    is_right = smallest_t is not None and (is_near or smallest_t <= -5)
    assert suite.columns.float64_correct == is_right


def test_a_failure_is_no_nearer_to_float64_for_what_it_says() -> None:
    for status in ("runtime_error", "no_match", "wrong_shape", "cheat"):
        suite = score_suite({"a": [Score(status, is_near=True)]})
        assert suite.score_float64 == suite.score


def test_tasks_weigh_alike_as_in_the_headline() -> None:
    near, far = Score("ok", -2, 1.0, True), Score("ok", -2, 1.0)
    suite = score_suite({"a": [near], "b": [far, far]})
    expected = math.sqrt(suite.tasks_float64["a"] * suite.tasks["b"])
    assert suite.score_float64 == pytest.approx(expected)
