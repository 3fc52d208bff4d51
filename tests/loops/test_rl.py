"""What answers earn in reinforcement, by the judge, where only some of them are judged."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from passnet.core.records.serialise import LineWriter, encode, read_json, read_lines
from passnet.errors import InputError
from passnet.graph.text.render import render_program
from passnet.train.rewards.monitors import MONITORS_FILE, MonitorRecord
from passnet.train.rewards.reward import DEFAULT_REWARD, correct_reward
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import SAMPLES_FILE, Sample
from passnet_loops.build import read_training, write_rows
from passnet_loops.checkpoint import INFO_FILE, LlmShape, SftSettings, TrainInfo
from passnet_loops.language.grammar import AnswerGrammar, first_misfit
from passnet_loops.loops_reward import (
    RIGHT_WHERE_RUN,
    ROLLOUTS_FILE,
    SHOWN_WRONG,
    JudgeReward,
    RewardPlan,
    Rollout,
    subject_of,
)
from passnet_loops.rl import RlSettings, forget_redone, run_rl
from passnet_loops.sft import STATES, SftPlan, run_sft
from passnet_loops.training_rows import split_rows_to_watch
from tests.loops.softmax import ANSWER, softmax_graph

SHIPPED = Path(__file__).parents[2] / "training"

TURNED = ANSWER.replace("add a0 [ i0 r0 ] a1 [ r0 ]", "add a1 [ r0 ] a0 [ i0 r0 ]")
"""Another right answer."""

OVERFLOWS, TURNED_OVERFLOWS = (text.replace("max s0", "min s0") for text in (ANSWER, TURNED))
"""The same where exp does not overflow, which only the judge tries."""

WRONG = ANSWER.replace("a1 [ r0 ]", "a1 [ 0 ]")


def test_answers_that_are_not_judged_earn_what_the_judged_ones_did(tmp_path: Path) -> None:
    graph = softmax_graph()
    answers = [ANSWER, WRONG, TURNED, OVERFLOWS, TURNED_OVERFLOWS, TURNED, "end"]
    fields = ([render_program(graph.program)], [encode(graph.tensors).decode()], ["softmax"])
    with (
        SampleLog(tmp_path) as log,
        JudgeReward(tmp_path, log, RewardPlan(judge_every=2)) as reward,
    ):
        earned = reward([""] * len(answers), answers, *(len(answers) * each for each in fields))
    statuses = [row.status for row in read_lines(tmp_path / ROLLOUTS_FILE, Rollout)]
    judged, unjudged = "ok", RIGHT_WHERE_RUN
    assert statuses == [judged, SHOWN_WRONG, unjudged, judged, unjudged, unjudged, "no folder"]
    right = correct_reward(None, DEFAULT_REWARD, replaced=1.0)
    assert earned[0] == earned[2] == right
    assert earned[3] < 0.5, "the judge found it wrong"
    # Of the two that were judged by then one was correct; one counts as correct before the first.
    assert earned[4] == earned[5] == pytest.approx(2 / 3 * right)
    assert earned[1] == DEFAULT_REWARD.matches and earned[6] == 0
    assert [sample.is_right_where_run for sample in log.samples] == [
        status == RIGHT_WHERE_RUN for status in statuses
    ]


def test_credit_for_stages_ends_at_a_step_however_often_the_run_went_on(tmp_path: Path) -> None:
    graph = softmax_graph()
    fields = ([render_program(graph.program)], [encode(graph.tensors).decode()], ["softmax"])
    with (
        SampleLog(tmp_path) as log,
        JudgeReward(tmp_path, log, RewardPlan(stage_steps=10)) as reward,
    ):
        earned = [
            reward([""], [WRONG], *fields, trainer_state=SimpleNamespace(global_step=step))[0]
            for step in (0, 5, 10, 50)
        ]
    assert earned == [DEFAULT_REWARD.matches, pytest.approx(DEFAULT_REWARD.matches / 2), 0, 0]


def test_a_run_that_goes_on_forgets_what_its_last_state_does_not_know(tmp_path: Path) -> None:
    for step in (4, 16, 8):
        (tmp_path / STATES / f"checkpoint-{step}").mkdir(parents=True)
    samples = [Sample(number, number // 2, "a graph", 1.0) for number in range(40)]
    with LineWriter(tmp_path / SAMPLES_FILE) as writer:
        for sample in samples:
            writer.write(sample)
    with LineWriter(tmp_path / MONITORS_FILE) as writer:
        for step in range(1, 20):
            writer.write(MonitorRecord(step, ()))
    with LineWriter(tmp_path / ROLLOUTS_FILE) as writer:
        for sample in samples:
            writer.write(Rollout(sample.step, "a graph", "end", 1.0, "ok", (), 0.1))
    with (tmp_path / ROLLOUTS_FILE).open("a") as file:
        file.write('{"step": 20, "gra')
    log = SampleLog(tmp_path)
    forget_redone(log)
    with log:
        assert log.samples == samples[:32]
    rollouts = list(read_lines(tmp_path / ROLLOUTS_FILE, Rollout))
    assert [each.step for each in rollouts] == [each.step for each in samples[:32]]
    records = list(read_lines(tmp_path / MONITORS_FILE, MonitorRecord))
    assert [each.step for each in records] == list(range(1, 17)), "it was saved after step 16"


def test_a_run_with_answers_is_not_begun_anew_by_accident(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs passnet[train]")
    with LineWriter(tmp_path / SAMPLES_FILE) as writer:
        writer.write(Sample(0, 0, "a graph", 1.0))
    with pytest.raises(InputError, match="add --resume"):
        run_rl(tmp_path, tmp_path, tmp_path, RlSettings())


def test_speed_is_not_paid_for_where_answers_are_not_judged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave out --judge"):
        run_rl(tmp_path, tmp_path, tmp_path, RlSettings(is_timed=True, judge_every=2))


@pytest.mark.slow
def test_an_llm_is_reinforced_in_words_that_the_grammar_allows(tmp_path: Path) -> None:
    for name in ("trl", "pytorch_optimizer"):
        pytest.importorskip(name, reason="needs passnet[train]")
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    manifest, rows = read_training(SHIPPED)
    _, watched = split_rows_to_watch(rows)
    data, begun, out = (tmp_path / name for name in ("data", "begun", "out"))
    few = [row for row in watched if row.words < 100][:6]
    write_rows(data, few, manifest.evaluation, Counter())
    shape = LlmShape(32, 2, 2)
    run_sft(data, begun, SftSettings(shape, is_bfloat16=False), SftPlan(is_untrained=True))
    settings = RlSettings(num_steps=2, num_prompts=2, num_answers=3, max_words=40)
    made = run_rl(data, begun, out, settings)
    assert made.stage == "rl" and made == read_json(out / INFO_FILE, TrainInfo)
    rollouts = list(read_lines(out / ROLLOUTS_FILE, Rollout))
    assert [each.step for each in rollouts] == 6 * [0] + 6 * [1]
    by_full = {row.full: row for row in few}
    for rollout in rollouts:
        row = by_full[rollout.graph]
        words = rollout.answer.split()
        numbers = [each for each in words if each.strip("-")[:1].isdigit()]
        prompt = subject_of(row.program, row.tensors, row.full).prompt
        grammar = AnswerGrammar(prompt, [*numbers, "True", "False", "inf", "-inf", "nan"])
        misfit = first_misfit(grammar, rollout.answer)
        assert misfit is None or misfit[0] == len(words), (rollout.answer, misfit)
        assert 0 < len(words) <= 40
