from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from passnet.suite.suite import load_suite
from passnet.train.evaluate import (
    AnswerRecord,
    EvaluationInfo,
    chosen_graphs,
    evaluate_system,
    paired_difference,
    prompt_of,
    summary,
    teacher_answers,
)
from passnet.train.judging import JudgedAnswer
from passnet.train.rl import _filled, _reward


def record(system: str, number: int, is_correct: bool) -> AnswerRecord:
    verdict = "correct" if is_correct else "wrong"
    return AnswerRecord(system, f"task{number}", f"graph{number}", "", 1, verdict, "ok", None,
                        None, None, (), None, 0.0)  # fmt: skip


def test_systems_are_compared_task_by_task() -> None:
    good = [record("a", n, True) for n in range(40)]
    bad = [record("b", n, n % 2 == 0) for n in range(40)]
    gain, low, high = paired_difference(good, bad)
    assert gain == 0.5 and 0.3 < low < 0.5 < high < 0.7
    assert paired_difference(good, good) == (0, 0, 0)
    assert summary("b", bad).correct == 0.5


def test_what_the_judge_cannot_say_moves_nothing() -> None:
    busy = JudgedAnswer("not judged", "unstable", 1.0)
    assert _reward(busy, 0.0) is None
    assert _reward(None, 0.0) == 0
    assert _filled([1.0, None, 0.5, None], ["a", "a", "a", "b"]) == [1.0, 0.75, 0.5, 0.0]


class CountingJudge:
    """Finds every answer correct, and counts how many it was asked about."""

    def __init__(self) -> None:
        self.num_judged = 0

    def judge_graphs(self, graphs: Sequence[Any], _files: Any) -> list[JudgedAnswer]:
        self.num_judged += 1
        return [JudgedAnswer("correct", "ok", 1.0, -9) for _ in graphs]


@pytest.mark.parametrize("is_timed", [False, True])
def test_the_same_answer_is_judged_once_unless_it_is_timed(is_timed: bool, tmp_path: Path) -> None:
    suite = load_suite("demo")
    graphs = [g for g in chosen_graphs(suite, 1, None) if g.task == "gelu_tanh"]
    asked = [prompt for prompt in map(prompt_of, graphs) if prompt is not None]
    [[answer]] = teacher_answers(asked)
    info = EvaluationInfo("demo", "hash", tuple(g.name for g in graphs), is_timed)
    judge: Any = CountingJudge()
    for name in ("one", "two"):
        [made] = evaluate_system(name, lambda _: [[answer]], graphs, tmp_path, info, judge, print)
        assert made.system == name and made.answer == answer and made.is_correct
    assert judge.num_judged == (2 if is_timed else 1)
