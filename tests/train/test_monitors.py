"""Monitors see what goes wrong in a training, each on its own, and stop it with a sentence."""

from dataclasses import replace

import pytest

from passnet.errors import TrainingStoppedError
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import finding
from passnet.train.rewards.monitors import (
    MONITORS,
    MonitorLimits,
    MonitorRecord,
    monitor_rows,
    read_monitors,
    stop_if_beyond,
    to_measure_again,
)
from passnet.train.rewards.samples import Sample, sample_of

LIMITS = MonitorLimits(window=40, min_samples=10)
GOOD = Sample(0, 0, "a", 1.2, ("ok",), True, speedup_low=1.6, floor_ratio=3.0, num_tokens=100)
HEALTHY = [
    replace(GOOD, step=n // 8, group=f"task{n // 4}", reward=0.1 * (n % 4)) for n in range(80)
]
LOGS = {"entropy": 0.5, "clip_ratio/region_mean": 0.01, "completions/clipped_ratio": 0.1}

TROUBLE = {
    "cheats": ({"cheats": ("replayed_output",)}, {}, "100% of the answers cheat "
               "(40 of 40, 40 replayed_output), more than 10%; read them in samples.jsonl"),
    "flags": ({"flags": ("evasion",)}, {}, "100% of the correct answers are flagged"),
    "near_floor": ({"floor_ratio": 0.9}, {}, "hardly longer than reading and writing"),
    "held_out": ({"fails_held_out": True}, {}, "fail on held-out shapes"),
    "remeasured": ({"speedup_again": 0.8}, {}, "keep 50% of their speedup"),
    "equal_groups": ({"reward": 1.0}, {}, "in 100% of the groups all answers earn the same "
                     "(10 of 10 groups)"),
    "truncated": ({"is_truncated": True}, {}, "100% of the answers are cut off"),
    "clip_ratio": ({}, {"clip_ratio/region_mean": 0.9}, "90% of the tokens are clipped"),
    "least_entropy": ({}, {"entropy": 0.001}, "is 0.001 nats, less than 0.02"),
    "length_growth": ({"num_tokens": 1000}, {}, "answers are 10 times as long"),
    "unknown": ({"reward": None, "fault": "no clock"}, {}, "40 fault"),
}  # fmt: skip


def record(samples, logs=LOGS, limits=LIMITS):
    return MonitorRecord(7, read_monitors(samples, logs, limits))


def test_a_healthy_run_goes_on():
    seen = record(HEALTHY)
    stop_if_beyond(seen, "samples.jsonl")
    assert [row[0] for row in monitor_rows(seen)] == list(MONITORS)
    assert {reading.monitor for reading in seen.readings if reading.value is None} == {"remeasured"}


@pytest.mark.parametrize("name", MONITORS)
def test_each_trouble_is_seen_by_its_monitor_and_stops_the_run(name):
    fields, logs, text = TROUBLE[name]
    samples = [*HEALTHY[:40], *(replace(each, **fields) for each in HEALTHY[40:])]
    seen = record(samples, {**LOGS, **logs})
    assert [reading.monitor for reading in seen.readings if reading.is_beyond] == [name]
    with pytest.raises(TrainingStoppedError) as stopped:
        stop_if_beyond(seen, "samples.jsonl")
    assert str(stopped.value).startswith("stopped at step 7: ") and text in str(stopped.value)
    stop_if_beyond(record(samples, {**LOGS, **logs}, replace(LIMITS, **{name: None})), "")


def test_a_trainer_that_alone_knows_of_answers_cut_off_is_heard():
    with pytest.raises(TrainingStoppedError, match="60% of the answers are cut off, more than 50%"):
        stop_if_beyond(record(HEALTHY, {**LOGS, "completions/clipped_ratio": 0.6}), "")


def test_few_answers_stop_nothing():
    few = [replace(GOOD, cheats=("late_write",))] * 9
    stop_if_beyond(record(few), "samples.jsonl")


def test_a_share_of_few_correct_answers_stops_nothing():
    wrong = [replace(each, is_correct=False) for each in HEALTHY[:35]]
    flagged = [replace(GOOD, flags=("unstable_maths",), reward=0.1 * n) for n in range(5)]
    seen = record([*wrong, *flagged])
    stop_if_beyond(seen, "samples.jsonl")
    [flags] = [reading for reading in seen.readings if reading.monitor == "flags"]
    assert (flags.value, flags.evidence) == (1.0, "5 of 5, 5 unstable_maths")
    with pytest.raises(TrainingStoppedError, match="5 of 5, 5 unstable_maths"):
        stop_if_beyond(record([*wrong, *flagged], limits=replace(LIMITS, min_counted=5)), "")


def test_the_fastest_in_a_hundred_are_measured_again_and_one_at_least():
    samples = [replace(GOOD, speedup_low=float(n), group=str(n)) for n in range(1, 301)]
    assert [each.group for each in to_measure_again(samples)] == ["300", "299", "298"]
    assert len(to_measure_again(samples[:5])) == 1 and to_measure_again([]) == []


def test_a_sample_keeps_the_files_of_what_should_be_read_and_of_nothing_else():
    right = Trial("t", "g", "c", "ok", smallest_t=-6, speedup_low=1.5, candidate_ms=0.2)
    flagged = replace(right, findings=(finding("thread", "starts one"),))
    seen = [sample_of(0, 1, "t", 1.0, [trial], {"a.py": ""}, [0.1]) for trial in (right, flagged)]
    assert [each.files for each in seen] == [None, {"a.py": ""}]
    assert seen[0].is_correct and seen[0].floor_ratio == 2.0 and seen[1].flags == ("thread",)
    both = sample_of(0, 1, "t", 1.0, [right, replace(right, speedup_low=1.2)], {})
    assert both.speedup_low == 1.2
