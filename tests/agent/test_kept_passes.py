"""Under `passes` of a run lies the best pass folder of each task, timed or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import Attempt
from passnet.agent.run import write_passes
from passnet.errors import InputError
from passnet.judge.trial import Trial
from passnet.passes.files import read_files
from tests.agent.attempts import attempt, different, evaluation, folder


def untimed(number: int, **changes) -> Attempt:
    """An attempt whose work is correct, and that the machine was too busy to time."""
    files = folder(f"def replacement(x, y):\n    return x + y + {number}\n")
    evaluations = (evaluation(2, None, **files),)
    scores = {"score": None, "final_score": None}
    return different(number, **{"evaluations": evaluations, **scores, **changes})


def timed(number: int, score: float) -> Attempt:
    """An attempt with a score."""
    return different(number, score=score, final_score=score)


def kept_of(out: Path, *attempts: Attempt) -> dict[str, str]:
    """The pass folder that is there after some attempts ended one after the other."""
    for number in range(1, len(attempts) + 1):
        write_passes(out, attempts[:number])
    return read_files(out / "relu") if (out / "relu").exists() else {}


def test_an_attempt_that_was_not_timed_keeps_its_passes(tmp_path: Path) -> None:
    alone = untimed(0)
    assert kept_of(tmp_path, alone) == alone.files


@pytest.mark.parametrize("score", [0.5, 1.5])
def test_what_was_timed_and_is_right_stays_beside_what_was_not(
    score: float, tmp_path: Path
) -> None:
    best = timed(0, score)
    assert kept_of(tmp_path / "before", best, untimed(1)) == best.files
    assert kept_of(tmp_path / "after", untimed(1), best) == best.files


def test_of_several_that_were_not_timed_the_last_is_kept(tmp_path: Path) -> None:
    last = untimed(2)
    assert kept_of(tmp_path, untimed(0), untimed(1), last) == last.files


def test_what_is_wrong_and_slow_gives_way_to_what_is_right_and_was_not_timed(
    tmp_path: Path,
) -> None:
    wrong = different(
        0, evaluations=(evaluation(2, 0.1, passing=False),), score=0.1, final_score=0.1
    )
    right = untimed(1)
    assert kept_of(tmp_path / "after", wrong, right) == right.files
    assert kept_of(tmp_path / "before", right, wrong) == right.files


def test_what_is_neither_timed_nor_right_is_not_kept(tmp_path: Path) -> None:
    wrong = untimed(0, evaluations=(evaluation(2, None, passing=False),))
    assert kept_of(tmp_path, wrong) == {}
    assert kept_of(tmp_path, attempt(best=None, score=None, final_score=None)) == {}


@pytest.mark.parametrize(("speedup", "best"), [(1.4, 0), (1.6, 1)])
def test_a_graph_that_was_not_timed_at_the_end_decides_nothing(
    speedup: float, best: int, tmp_path: Path
) -> None:
    fast, slow = (
        Trial("relu", name, "passes", "ok", smallest_t=-5, speedup=known)
        for name, known in (("relu-0", 1.5), ("relu-1", 1.1))
    )
    untimed_slow = replace(slow, status="unstable", speedup=None)
    first = different(0, judged=(fast, slow), final_score=1.28)
    last = different(1, judged=(replace(fast, speedup=speedup), untimed_slow), final_score=speedup)
    assert kept_of(tmp_path, first, last) == (first, last)[best].files


def test_files_of_the_folder_that_gives_way_are_gone(tmp_path: Path) -> None:
    more = {**folder(), "more.py": "x = 1\n"}
    first = untimed(0, evaluations=(evaluation(2, None, **more),))
    last = timed(1, 1.5)
    assert kept_of(tmp_path, first, last) == last.files


def test_files_that_no_attempt_wrote_stay(tmp_path: Path) -> None:
    first, last = untimed(0), timed(1, 1.5)
    write_passes(tmp_path, [first])
    (tmp_path / "relu" / "mine.txt").write_text("a note of the user")
    write_passes(tmp_path, [first, last])
    assert read_files(tmp_path / "relu") == {**last.files, "mine.txt": "a note of the user"}
    write_passes(tmp_path, [different(1, best=None)], earlier=[last])
    assert [path.name for path in (tmp_path / "relu").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("task", ["../relu", "/tmp/relu", ".", ""])
def test_no_passes_are_written_outside_of_their_folder(task: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no name of a file or folder within"):
        write_passes(tmp_path / "passes", [replace(timed(0, 1.5), task=task)])
