"""The score under other rules: each against the metric itself, and what order they give."""

import json
import math
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passnet.errors import InputError
from passnet.judge.score.es import Score
from passnet.judge.score.suite_score import score_suite
from recipes.sensitivity import (
    PUBLISHED_RULE,
    RULES,
    ScoredTrial,
    ScoreRule,
    kendall_tau,
    log_as,
    sensitivity,
)
from recipes.sensitivity.trials import candidates_of

FAST, NEAR, LOST = Score("ok", -5, 2.0), Score("ok", -2, 1.5, is_near=True), Score("no_match")
STRIDES = Score("wrong_shape")


def trials(*scores: Score) -> list[ScoredTrial]:
    return [ScoredTrial(score, score is STRIDES) for score in scores]


CANDIDATES = {
    "bold": {"a": trials(FAST, NEAR), "b": trials(NEAR), "c": trials(STRIDES, FAST)},
    "safe": {"a": trials(Score("ok", -5, 1.0)), "b": trials(Score("ok", -5, 0.9)),
             "c": trials(Score("ok", -5, 1.0))},
    "lost": {"a": trials(LOST), "b": trials(LOST), "c": trials(LOST), "d": trials(FAST)},
}  # fmt: skip


@cache
def outcomes() -> dict[str, object]:
    return {each.rule.name: each for each in sensitivity(CANDIDATES)}


def test_the_published_rule_is_the_score() -> None:
    for name, tasks in CANDIDATES.items():
        shared = {task: [each.score for each in tasks[task]] for task in "abc"}
        suite = score_suite(shared)
        found = outcomes()
        assert found["as published"].scores[name].value == pytest.approx(suite.score)
        assert found["all trials pooled"].scores[name].value == pytest.approx(suite.score_pooled)
        against = found["against float64 (AS64)"].scores[name].value
        assert against == pytest.approx(suite.score_float64)
        for b in (0.01, 0.5):
            assert found[f"b = {b:g}"].scores[name].value == pytest.approx(
                score_suite(shared, b=b).score
            )
        assert found["p = 1"].scores[name].value == pytest.approx(score_suite(shared, p=1).score)


def test_the_order_is_compared_with_the_published_one() -> None:
    found = outcomes()
    assert found["as published"].tau == 1.0
    ranks = {name: score.rank for name, score in found["as published"].scores.items()}
    assert ranks == {"safe": 1, "bold": 2, "lost": 3}
    near = {n: score.rank for n, score in found["against float64 (AS64)"].scores.items()}
    assert near["bold"] == 1 if found["against float64 (AS64)"].tau < 1 else near["bold"] == 2
    for outcome in found.values():
        assert outcome.tau_interval.low <= outcome.tau <= outcome.tau_interval.high


def test_trials_that_failed_for_strides_alone_are_left_out_where_none_are_demanded() -> None:
    outcome = outcomes()["not demanded: such trials left out"]
    assert outcome.num_left_out == 1
    without = {"a": [FAST, NEAR], "b": [NEAR], "c": [FAST]}
    assert outcome.scores["bold"].value == pytest.approx(score_suite(without).score)


def test_a_level_stricter_or_looser_moves_where_a_trial_is_correct() -> None:
    stricter, looser = (ScoreRule("", "", shift=shift) for shift in (1, -1))
    assert log_as(FAST, stricter) == pytest.approx(log_as(Score("ok", -4, 2.0)))
    assert log_as(Score("ok", -4, 2.0), looser) == pytest.approx(log_as(FAST))
    assert log_as(Score("ok", 4, 2.0), stricter) == pytest.approx(log_as(Score("ok", None)))


def test_candidates_without_a_common_task_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="no task in common"):
        sensitivity({"x": {"a": trials(FAST)}, "y": {"b": trials(FAST)}})
    with pytest.raises(InputError, match="no candidate"):
        sensitivity({})
    [only] = sensitivity({"x": {"a": trials(FAST)}}, [PUBLISHED_RULE])
    assert only.tau is None


@given(st.lists(st.integers(0, 5), min_size=2, max_size=7), st.randoms())
def test_tau_is_that_of_all_pairs(first: list[int], random) -> None:
    second = first[:]
    random.shuffle(second)
    pairs = [(i, j) for i in range(len(first)) for j in range(i)]
    agree = sum(
        ((first[i] > first[j]) - (first[i] < first[j]))
        * ((second[i] > second[j]) - (second[i] < second[j]))
        for i, j in pairs
    )
    untied = [sum(row[i] != row[j] for i, j in pairs) for row in (first, second)]
    expected = agree / math.sqrt(untied[0] * untied[1]) if all(untied) else 0.0
    assert kendall_tau(first, second) == pytest.approx(expected)


def test_every_rule_but_the_published_one_differs_from_it_in_one_thing() -> None:
    names = [name for name in ScoreRule.__dataclass_fields__ if name not in ("group", "name")]
    for rule in RULES[1:]:
        changed = [name for name in names if getattr(rule, name) != getattr(PUBLISHED_RULE, name)]
        assert len(changed) == 1, rule


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    row = {"task": "t", "graph": "g", "status": "ok", "smallest_t": -9, "candidate": "inductor"}
    runs = [tmp_path / name for name in ("a/run", "b/run", "c")]
    for speedup, run in enumerate(runs, start=1):
        run.mkdir(parents=True)
        (run / "trials.jsonl").write_text(json.dumps({**row, "speedup": speedup}) + "\n")
    found = candidates_of([*runs, runs[0]])
    speedups = {name: [trial.score.speedup for trial in own["t"]] for name, own in found.items()}
    assert speedups == {"inductor (a/run)": [1], "inductor (b/run)": [2], "inductor (c)": [3]}
