"""What an answer earns: speed by its lower bound, little for failing well, nothing for cheating."""

import math
from dataclasses import replace

import pytest

from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import finding
from passnet.train.rewards.reward import (
    answer_files,
    speed_reward,
    stage_of,
    task_reward,
    trial_reward,
)

RIGHT = Trial("task", "graph", "it", "ok", smallest_t=-6, speedup=2.2, speedup_low=2.0)
WRONG = replace(RIGHT, smallest_t=-2)


def failed(status, **fields):
    return Trial("task", "graph", "it", status, **fields)


@pytest.mark.parametrize(
    ("factor", "reward"), [(0.1, 0), (1, 1), (2, 1.30103), (3, 1.47712), (99, 1.47712), (0, 0)]
)
def test_speed_earns_its_logarithm_within_bounds(factor, reward):
    assert speed_reward(factor) == pytest.approx(reward, abs=1e-5)


def test_a_correct_answer_earns_by_the_lower_bound_of_its_speedup():
    assert trial_reward(RIGHT) == pytest.approx(1 + math.log10(2.0))


def test_what_the_judge_could_not_find_out_is_none():
    for status in ("unstable", "reference_error"):
        assert trial_reward(failed(status, smallest_t=-7), progress=0) is None


def test_credit_grows_with_the_stage_and_decays_to_nothing():
    trials = [
        failed("cheat"),
        failed("compile_error"),
        failed("no_match"),
        failed("crash", matches={"Fuse": 1}),
        WRONG,
        replace(RIGHT, speedup_low=0.2),
    ]
    assert [stage_of(trial) for trial in trials] == [
        "nothing", "expands", "compiles", "matches", "right_form", "correct",
    ]  # fmt: skip
    rewards = [trial_reward(trial, progress=0) for trial in trials]
    assert rewards == sorted(set(rewards))
    half = [trial_reward(trial, progress=0.5) for trial in trials[1:5]]
    assert half == [reward / 2 for reward in rewards[1:5]]
    assert [trial_reward(trial, progress=1) for trial in trials[:5]] == [0, 0, 0, 0, 0]


def test_a_right_answer_that_is_slow_earns_no_less_than_a_wrong_one():
    slow = replace(RIGHT, speedup_low=0.01)
    assert trial_reward(slow, progress=0) == trial_reward(WRONG, progress=0) > 0
    assert trial_reward(slow, progress=1) == trial_reward(slow, progress=0)


def test_a_right_answer_that_was_not_to_be_timed_earns_eager_speed():
    assert trial_reward(replace(RIGHT, speedup=None, speedup_low=None)) == 1


def test_a_cheat_on_one_graph_costs_the_whole_task():
    cheat = failed("cheat", findings=(finding("replayed_output", "of call 3"),))
    assert trial_reward(cheat, progress=0) == task_reward([RIGHT, cheat], progress=0) == 0


def test_a_flag_earns_no_more_than_eager_speed():
    flagged = replace(RIGHT, findings=(finding("evasion", "exec"),))
    assert trial_reward(flagged) == 1
    assert trial_reward(replace(flagged, speedup_low=0.5)) == trial_reward(
        replace(RIGHT, speedup_low=0.5)
    )


OPENING = "`a.py`:\n```python\n"
CASES = {
    "a fence within a longer one": ("`a.py`:\n\n````\nx\n```\ny\n````\n", {"a.py": "x\n```\ny\n"}),
    "blank lines and an empty file": ("`a.py`: \n \n\n```\n```  \nmore", {"a.py": ""}),
    "the last of one name": (f"{OPENING}x\n```\n{OPENING}y\n```", {"a.py": "y\n"}),
    "an opening in a file": (f"{OPENING}`b.py`:\n```x\ny\n```\n", {"a.py": "`b.py`:\n```x\ny\n"}),
    "text between name and fence": ("`a.py`:\nhere:\n```\nx\n```\n", None),
    "a name that is none": ("`a.py`\n```\nx\n```\n", None),
    "no end, then a file": (f"`b.py`:\n````\nz\n{OPENING}x\n```\n", {"a.py": "x\n"}),
    "no end": (OPENING * 3, None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pass_folder_is_read_from_the_named_blocks_of_an_answer(name):
    text, files = CASES[name]
    assert answer_files(text) == files


def test_an_answer_of_many_openings_is_read_in_linear_time():
    assert answer_files(OPENING * 100_000) is None  # in quadratic time this takes minutes
    many = "".join(f"`{number}.py`:\n```\nx\n```\n" for number in range(100_000))
    assert answer_files(many) is None  # more files than a pass folder may have


def test_a_task_is_the_mean_of_what_is_known_of_its_graphs():
    assert task_reward([RIGHT, failed("unstable"), WRONG]) == trial_reward(RIGHT) / 2
    assert task_reward([failed("unstable")]) is None and task_reward([]) is None
