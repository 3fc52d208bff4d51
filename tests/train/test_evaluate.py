from passnet.train.evaluate import AnswerRecord, paired_difference, summary
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
