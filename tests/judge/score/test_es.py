"""ES_t and AS: the worked vectors, the closed form, the published values, the rules one by one."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.errors import InputError
from passnet.judge.score.es import WEIGHTS, Score, aggregate, es, es_by_t, factor
from passnet.judge.score.status import STATUSES, TOLERATED_FROM
from passnet.judge.score.tolerance import LEVELS

VECTOR_STATUS = {"correct": "ok", "compile": "compile_error", "runtime": "runtime_error"}


def es_closed_form(trials: Sequence[Score], t: int, b: float, p: float) -> float:
    """Return ES_t by the published closed form, S_t with b replaced by gamma_t.

    S_t = alpha^lambda * beta^(lambda * eta * p) * b^(1 - lambda), with alpha the geometric mean of
    the speedups of correct trials, beta that of those below 1, lambda the share of correct trials,
    eta the share of those that are slower; gamma_t = b^(sum_c pi_c [t < c]), pi_c the share of
    error class c among the failures. For t >= 1 correctness is that at 1.
    """
    level = min(t, 1)
    correct = [trial.speedup or 1.0 for trial in trials if trial.is_correct(level)]
    failed = [trial for trial in trials if not trial.is_correct(level)]
    slower = [speedup for speedup in correct if speedup < 1]
    alpha = geometric_mean(correct) if correct else 1.0
    beta = geometric_mean(slower) if slower else 1.0
    share = len(correct) / len(trials)
    eta = len(slower) / len(correct) if correct else 0.0
    severe = [trial for trial in failed if (c := TOLERATED_FROM[trial.status]) is None or t < c]
    gamma = b ** (len(severe) / len(failed)) if failed else 1.0
    return float(alpha**share * beta ** (share * eta * p) * gamma ** (1 - share))


def test_the_worked_vectors_are_met_to_nine_digits(es_vectors: Path) -> None:
    vectors = json.loads(es_vectors.read_text())
    assert len(vectors) >= 12
    for vector in vectors:
        trials = [
            Score(VECTOR_STATUS.get(item["status"], item["status"]), item["t"], item["speedup"])
            for item in vector["trials"]
        ]
        by_t = es_by_t(trials, vector["b"], vector["p"])
        for t in LEVELS:
            assert math.isclose(by_t[t], vector["es"][str(t)], rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(aggregate(by_t), vector["as"], rel_tol=1e-9, abs_tol=1e-9)


PUBLISHED = {
    Score("ok", -5, 1.0): 0.9981,
    Score("ok", -4, 1.0): 0.6781,
    Score("ok", -3, 1.0): 0.4607,
    Score("ok", -2, 1.0): 0.3130,
    Score("ok", -1, 1.0): 0.2298,
    Score("ok", 0, 1.0): 0.1794,
    Score("ok", None): 0.1472,
    Score("runtime_error"): 0.1107,
    Score("no_match"): 0.1,
}


@pytest.mark.parametrize("trial", PUBLISHED, ids=str)
def test_the_score_of_a_single_trial_is_the_published_one(trial: Score) -> None:
    assert round(aggregate(es_by_t([trial])), 4) == PUBLISHED[trial]


def test_the_weights_sum_to_the_published_total() -> None:
    assert math.isclose(sum(WEIGHTS.values()), 5.957424)
    assert sorted(WEIGHTS) == list(LEVELS)


scores = st.one_of(
    st.builds(
        Score,
        st.just("ok"),
        st.sampled_from([None, *LEVELS]),
        st.floats(0.01, 100, allow_subnormal=False),
    ),
    st.builds(Score, st.sampled_from([name for name in TOLERATED_FROM if name != "ok"])),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(scores, min_size=1, max_size=12),
    st.sampled_from(list(LEVELS)),
    st.floats(0.001, 1.0),
    st.floats(0, 3),
)
def test_the_closed_form_agrees_with_the_mean_of_factors(
    trials: list[Score], t: int, b: float, p: float
) -> None:
    assert math.isclose(es(trials, t, b, p), es_closed_form(trials, t, b, p), rel_tol=1e-9)


@given(st.lists(scores, min_size=1, max_size=8), st.randoms())
def test_the_order_of_trials_does_not_matter(trials: list[Score], random) -> None:
    shuffled = trials[:]
    random.shuffle(shuffled)
    assert math.isclose(aggregate(es_by_t(trials)), aggregate(es_by_t(shuffled)))


@given(scores, st.floats(1.0, 3.0))
def test_a_faster_trial_never_scores_less(trial: Score, gain: float) -> None:
    if trial.speedup is None:
        return
    faster = Score(trial.status, trial.smallest_t, trial.speedup * gain)
    for t in LEVELS:
        assert factor(faster, t) >= factor(trial, t)


@pytest.mark.parametrize("status", [name for name in STATUSES if name not in ("ok", "unstable")])
def test_each_failure_is_tolerated_from_its_own_level_on(status: str) -> None:
    start = TOLERATED_FROM[status]
    for t in LEVELS:
        tolerated = start is not None and t >= start
        assert factor(Score(status), t) == (1.0 if tolerated else 0.1)  # type: ignore[arg-type]


def test_the_tolerance_of_values_is_frozen_at_one() -> None:
    late = Score("ok", 2, 5.0)  # correct from t = 2 on, which is never asked
    assert [factor(late, t) for t in (0, 1, 2, 4)] == [0.1, 1.0, 1.0, 1.0]


def test_p_punishes_a_slow_down_and_not_a_gain() -> None:
    assert factor(Score("ok", -5, 0.5), 0, p=1.0) == 0.25
    assert factor(Score("ok", -5, 2.0), 0, p=1.0) == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Score("unstable"), "unstable trial has no score"),
        (lambda: Score("fine"), "unknown status 'fine'"),  # type: ignore[arg-type]
        (lambda: Score("ok", 5, 1.0), "smallest_t is 5"),
        (lambda: Score("ok", -5, None), "speedup is None"),
        (lambda: Score("ok", -5, 0.0), "speedup is 0.0"),
        (lambda: Score("ok", -5, math.inf), "speedup is inf"),
        (lambda: es([], 0), "no trial"),
        (lambda: es([Score("ok", -5, 1.0)], 0, b=0.0), "b is 0.0"),
        (lambda: es([Score("ok", -5, 1.0)], 0, p=-1.0), "p is -1.0"),
    ],
)
def test_what_cannot_be_scored_says_why(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
