"""An llm learns which of its own answers are right."""

from collections import Counter
from pathlib import Path

import pytest

from passnet.errors import InputError
from passnet.records.serialise import read_json, read_lines
from passnet.train.build import read_training, write_rows
from passnet.train.checkpoint import INFO_FILE, LlmShape, SftSettings, TrainInfo
from passnet.train.dpo import (
    DRAWN_FILE,
    DpoSettings,
    DrawnAnswers,
    Preference,
    preferences,
    prompts_to_ask,
    run_dpo,
)
from passnet.train.examples import TrainingRow
from passnet.train.sft import CURVE_FILE, run_sft
from passnet.train.training_rows import first_structures, split_rows_to_watch

SHIPPED = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="module")
def rows() -> list[TrainingRow]:
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    return first_structures(read_training(SHIPPED)[1], 200)


def test_right_answers_are_preferred_to_wrong_ones(rows: list[TrainingRow]) -> None:
    row = rows[0]

    def pairs(*marks: bool | None) -> list[tuple[str, str]]:
        drawn = DrawnAnswers(row.full, ("a", "b", "c")[: len(marks)], marks)
        made = preferences(row, drawn, max_pairs=2)
        assert all(pair.prompt == row.prompt + "\n" for pair in made)
        return [(pair.chosen, pair.rejected) for pair in made]

    assert pairs(True, False) == [("a", "b")]
    assert pairs(False, True, False) == [("b", "a"), ("b", "c")]
    assert pairs(True, False, True) == [("a", "b"), ("c", "b")]
    assert pairs(True, True) == pairs(True) == []
    assert pairs(None, False) == [(row.loops, "b")], "where none is right, the teacher's is"
    assert pairs(None, True) == [], "what the judge cannot say of an answer is neither"
    assert preferences(row, DrawnAnswers(row.full, (row.loops,), (False,)), 2) == []
    assert len(preferences(row, DrawnAnswers(row.full, ("a", "b", "c"), (False,) * 3), 2)) == 2


def test_prompts_that_fine_tuning_only_watched_are_asked_first(rows: list[TrainingRow]) -> None:
    settings = DpoSettings(num_prompts=40, max_words=200)
    asked = prompts_to_ask(rows, settings)
    assert len(asked) == 40 and all(row.words <= 200 for row in asked)
    _, watched = split_rows_to_watch([row for row in rows if row.words <= 200])
    assert 0 < len(watched) < 40
    assert {row.full for row in watched} < {row.full for row in asked}
    lengths = [len(row.prompt.split()) for row in asked]
    assert lengths == sorted(lengths), "answers that are drawn side by side are about as long"
    assert asked == prompts_to_ask(rows, settings)
    assert asked != prompts_to_ask(rows, DpoSettings(num_prompts=40, max_words=200, seed=1))


@pytest.mark.slow
def test_an_llm_learns_from_its_answers_and_goes_on_where_it_was(
    rows: list[TrainingRow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("trl", "pytorch_optimizer"):
        pytest.importorskip(name, reason="needs passnet[train]")
    data, start, out = (tmp_path / name for name in ("data", "start", "out"))
    manifest, _ = read_training(SHIPPED)
    write_rows(data, rows[:40], manifest.evaluation, Counter())
    run_sft(data, start, SftSettings(LlmShape(32, 2, 2), num_copies=1, is_bfloat16=False))
    settings = DpoSettings(num_prompts=12, num_answers=2, max_words=220, batch_size=4)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("passnet.train.dpo._prefer", stop)
        with pytest.raises(KeyboardInterrupt):
            run_dpo(data, start, out, settings)
    drawn = list(read_lines(out / DRAWN_FILE, DrawnAnswers))
    assert len(drawn) == len({each.full for each in drawn}) == 12
    assert any(is_right is False for each in drawn for is_right in each.are_right)
    with pytest.raises(InputError, match="add --resume"):
        run_dpo(data, start, out, settings)
    with pytest.raises(InputError, match="begun with another"):
        run_dpo(data, start, out, DpoSettings(num_prompts=13), resume=True)

    seen: list[Preference] = []
    usual = preferences

    def noted(*given: object) -> list[Preference]:
        made = usual(*given)  # type: ignore[arg-type]
        seen.extend(made)
        return made

    monkeypatch.setattr("passnet.train.dpo.preferences", noted)
    made = run_dpo(data, start, out, settings, resume=True)
    assert list(read_lines(out / DRAWN_FILE, DrawnAnswers)) == drawn, "none is drawn again"
    assert made.stage == "dpo" and read_json(out / INFO_FILE, TrainInfo) == made
    assert seen and all(pair.chosen != pair.rejected for pair in seen)
    curve = (out / CURVE_FILE).read_text()
    assert '"rewards/accuracies"' in curve
