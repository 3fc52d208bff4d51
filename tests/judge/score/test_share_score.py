"""AS by share: by hand, what does not matter to it, and what it depends on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passnet.judge.score.share_score import share_score

TASKS = {"a": 4.0, "b": 0.5, "c": 3.0, "without a share": 9.0}
SHARES = {"a": 0.2, "b": 0.1, "c": 0.0, "of another suite": 0.9}


def test_the_score_by_hand() -> None:
    found = share_score(TASKS, SHARES)
    assert found is not None and found.num_tasks == 2
    assert found.score == pytest.approx((4.0**2 * 0.5) ** (1 / 3))  # weights 2/3 and 1/3: 2
    root = math.sqrt(2)
    assert found.flatter == pytest.approx((4.0**root * 0.5) ** (1 / (1 + root)))
    assert found.steeper == pytest.approx((4.0**4 * 0.5) ** (1 / 5))
    # without a: 0.5 of 2; without b: 4 of 2
    assert (found.changed_by, found.largest_change) == ("a", pytest.approx(0.25))


def test_without_shares_there_is_no_score_and_one_task_cannot_be_left_out() -> None:
    assert share_score(TASKS, {}) is None
    assert share_score(TASKS, {"c": 0.0}) is None
    only = share_score(TASKS, {"a": 0.3})
    assert only is not None and only.score == pytest.approx(4.0)
    assert (only.largest_change, only.changed_by) == (None, None)


scores = st.lists(st.floats(0.1, 20), min_size=1, max_size=8)
shares = st.lists(st.floats(1e-3, 1), min_size=8, max_size=8)


def named(values: list[float]) -> dict[str, float]:
    return {f"t{number}": value for number, value in enumerate(values)}


@given(scores, st.floats(1e-3, 1))
def test_equal_shares_give_the_plain_score(values: list[float], share: float) -> None:
    found = share_score(named(values), named([share] * len(values)))
    plain = pytest.approx(math.exp(sum(map(math.log, values)) / len(values)))
    assert found is not None and (found.score, found.flatter, found.steeper) == (plain,) * 3


@given(scores, shares, st.floats(1e-3, 1e3))
def test_the_scale_of_shares_does_not_matter(
    values: list[float], given_shares: list[float], factor: float
) -> None:
    tasks, own = named(values), named(given_shares)
    scaled = share_score(tasks, {task: factor * share for task, share in own.items()})
    found = share_score(tasks, own)
    assert found is not None and scaled is not None
    assert scaled.score == pytest.approx(found.score)
    assert scaled.steeper == pytest.approx(found.steeper)


@given(scores, shares, st.floats(0.1, 20))
def test_a_task_with_share_0_does_not_count(
    values: list[float], given_shares: list[float], more: float
) -> None:
    tasks, own = named(values), named(given_shares)
    assert share_score(tasks | {"more": more}, own | {"more": 0.0}) == share_score(tasks, own)
