"""What answers earn in reinforcement, by the judge, where only some of them are judged."""

from pathlib import Path

import pytest

from passnet.errors import InputError
from passnet.graph.render import render_program
from passnet.records.serialise import encode, read_lines
from passnet.train.reward import DEFAULT_REWARD, correct_reward
from passnet.train.rl import (
    RIGHT_WHERE_RUN,
    ROLLOUTS_FILE,
    SHOWN_WRONG,
    JudgeReward,
    RlSettings,
    Rollout,
    run_rl,
)
from passnet.train.sample_log import SampleLog
from tests.train.softmax import ANSWER, softmax_graph

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
        JudgeReward(tmp_path, RlSettings(judge_every=2), log) as reward,
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


def test_speed_is_not_paid_for_where_answers_are_not_judged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave out --judge"):
        run_rl(tmp_path, tmp_path, tmp_path, RlSettings(is_timed=True, judge_every=2))
