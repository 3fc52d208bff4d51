"""The SOL score: vectors computed by hand, and graphs without a limit."""

import pytest

from passnet.judge.score.es import Score
from passnet.judge.score.sol import Limited, SolScore, sol_suite


def trial(
    speedup: float | None, reference_ms: float | None = 5.0, sol_ms: float | None = 1.0, t: int = -5
) -> Limited:
    return Limited(Score("ok", t, speedup), reference_ms, sol_ms)


FAILED = Limited(Score("compile_error"))


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
    found = trial(speedup, reference_ms, sol_ms).rated()
    assert found[0] == (None if score is None else pytest.approx(score))
    assert found[1] == (None if share is None else pytest.approx(share))


def test_incorrect_trials_score_nothing_and_reach_no_share() -> None:
    for wrong in (trial(3.0, t=-4), Limited(Score("ok", None, 3.0), 5.0, 1.0), FAILED):
        assert wrong.rated() == (0.0, None)


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
