"""The decision on a trial, from findings, failures, comparison and timing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from passnet.judge.candidate import Candidate
from passnet.judge.judge import confirmed_evidence
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.score.status import STATUSES
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.measurement import WorkerTiming
from passnet.judge.verdict.check import CheckResult
from passnet.judge.verdict.compare import Comparison
from passnet.judge.verdict.findings import Finding, finding
from passnet.judge.verdict.precision import Accuracy
from passnet.judge.verdict.verdict import Evidence, decide

SETTINGS = JudgeSettings(self_tolerance=0.1)
STEADY = WorkerTiming(
    reference_rounds_ms=((2.0, 2.0), (2.0, 2.0)),
    rounds_ms=((1.0, 1.0), (1.0, 1.0)),
    calls_per_turn=7,
    held_up=0.0,
    comparison=Comparison("ok", -6),
    findings=(),
    observed=(),
    failure=None,
    reference_hot_ms=None,
    hot_ms=None,
)
CHECKED = CheckResult(Comparison("ok", -7), Accuracy(0, "float32", 1e-7, 2e-7))
EVIDENCE = Evidence("t", "t-0", "fast", check=CHECKED, timing=STEADY)
CHEAT = finding("late_write", "an output changed")
FLAG = Finding("flag", "thread", "threading.Thread", "Fuse.py:3")


def test_what_agrees_and_was_measured_is_ok_with_its_speedup() -> None:
    trial = decide(EVIDENCE, SETTINGS)
    assert (trial.status, trial.smallest_t, trial.speedup) == ("ok", -6, 2.0)
    assert trial.speedup_low == trial.speedup_high == 2.0
    assert (trial.reference_ms, trial.candidate_ms, trial.calls_per_turn) == (2.0, 1.0, 7)
    assert (trial.relative_error, trial.eager_error) == (1e-7, 2e-7)


def test_the_larger_level_of_both_comparisons_counts() -> None:
    check = CheckResult(Comparison("ok", -2))
    assert decide(replace(EVIDENCE, check=check), SETTINGS).smallest_t == -2


def test_values_that_agree_nowhere_are_ok_without_a_level() -> None:
    timing = replace(STEADY, comparison=Comparison("ok", None, "output 0 of a timed call is wrong"))
    trial = decide(replace(EVIDENCE, timing=timing), SETTINGS)
    assert (trial.status, trial.smallest_t) == ("ok", None)
    assert trial.error == "output 0 of a timed call is wrong"


def test_a_proof_takes_the_result_away_and_keeps_what_was_measured() -> None:
    trial = decide(replace(EVIDENCE, findings=(FLAG, CHEAT)), SETTINGS)
    assert trial.status == "cheat" and trial.error == "late_write: an output changed"
    assert trial.smallest_t is None and trial.speedup is None and trial.speedup_low is None
    assert trial.candidate_ms == 1.0 and trial.findings == (FLAG, CHEAT)


def test_a_second_worker_takes_nothing_back_but_what_is_doubtful() -> None:
    taken = finding("loop_taken_over", "it stood still elsewhere")
    wrong = replace(STEADY, comparison=Comparison("ok", None, "wrong once"), findings=(CHEAT,))
    first = replace(EVIDENCE, findings=(CHEAT, taken), timing=wrong)
    assert first.is_doubtful and not EVIDENCE.is_doubtful
    both = first.confirmed_by(EVIDENCE)
    assert both.findings == (CHEAT,) and decide(both, SETTINGS).status == "cheat"
    seen = replace(first, findings=(taken,), timing=replace(wrong, findings=()))
    assert decide(seen.confirmed_by(EVIDENCE), SETTINGS).smallest_t is None
    again = seen.confirmed_by(replace(EVIDENCE, findings=(taken,)))
    assert again.findings == (taken,) and decide(again, SETTINGS).status == "cheat"


def test_a_flag_takes_nothing_away() -> None:
    assert decide(replace(EVIDENCE, findings=(FLAG,)), SETTINGS).speedup == 2.0


def test_a_cheat_needs_nothing_but_its_proof() -> None:
    proof = replace(FLAG, weight="reject")
    trial = decide(Evidence("t", "t-0", "fast", findings=(proof,)), SETTINGS)
    assert trial.status == "cheat" and trial.error == "Fuse.py:3: thread: threading.Thread"


@pytest.mark.parametrize("status", ["no_match", "crash", "reference_error"])
def test_a_failure_before_timing_is_the_status(status: str) -> None:
    evidence = Evidence("t", "t-0", "fast", failure=(status, "x" * 10_000))  # type: ignore[arg-type]
    trial = decide(evidence, SETTINGS)
    assert trial.status == status and trial.status in STATUSES
    assert trial.error == "x" * 600 and trial.speedup is None


def test_a_failure_while_it_is_timed_is_the_status() -> None:
    failure = WorkerFailureError("timeout", "Timeout", "no end of a call in 30 s")
    timing = replace(STEADY, rounds_ms=(), failure=failure)
    trial = decide(replace(EVIDENCE, timing=timing), SETTINGS)
    assert (trial.status, trial.error) == ("timeout", "Timeout: no end of a call in 30 s")
    assert trial.candidate_ms is None and trial.self_ratio == 1.0


def test_outputs_of_another_form_are_no_result() -> None:
    check = CheckResult(Comparison("wrong_shape", None, "2 outputs, the reference has 1"))
    trial = decide(Evidence("t", "t-0", "fast", check=check), SETTINGS)
    assert (trial.status, trial.error) == ("wrong_shape", "2 outputs, the reference has 1")


def test_a_reference_that_differs_from_itself_makes_the_trial_unstable() -> None:
    timing = replace(STEADY, reference_rounds_ms=((2.0, 2.4), (2.0, 2.4)))
    trial = decide(replace(EVIDENCE, timing=timing), SETTINGS)
    assert trial.status == "unstable" and trial.speedup is None and trial.smallest_t == -6
    assert "too busy" in (trial.error or "")
    wrong = CheckResult(Comparison("ok", 1, "output 0 is wrong at [3]"))
    trial = decide(replace(EVIDENCE, timing=timing, check=wrong), SETTINGS)
    assert (trial.status, trial.error) == ("unstable", "output 0 is wrong at [3]")
    wrong = CheckResult(Comparison("ok", None, "output 0 is wrong at [3]"))
    trial = decide(replace(EVIDENCE, timing=timing, check=wrong), SETTINGS)
    assert (trial.status, trial.smallest_t, trial.speedup) == ("ok", None, None)


def test_what_is_not_timed_has_a_level_and_no_speedup() -> None:
    trial = decide(replace(EVIDENCE, timing=None), SETTINGS)
    assert (trial.status, trial.smallest_t, trial.speedup) == ("ok", -7, None)


@pytest.mark.parametrize(("num_workers", "status"), [(1, "ok"), (2, "cheat")])
def test_a_worker_that_stops_elsewhere_is_tried_once_more(num_workers: int, status: str) -> None:
    judged: list[Sequence[Candidate]] = []

    def judge(candidates: Sequence[Candidate]) -> dict[str, Evidence]:
        judged.append(candidates)
        elsewhere = (finding("loop_taken_over", "3 of 9 turns"),)
        stops_elsewhere = len(judged) <= num_workers
        return {"fast": replace(EVIDENCE, findings=elsewhere if stops_elsewhere else ())}

    evidence = confirmed_evidence(judge, [Candidate("fast", "eager")])
    assert decide(evidence["fast"], SETTINGS).status == status and len(judged) == 2
