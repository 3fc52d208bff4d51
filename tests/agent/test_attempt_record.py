"""The record of an attempt names its machine, settings and versions."""

from pathlib import Path

import pytest

from passnet.agent.attempts.attempt_record import attempt_record, submitted
from passnet.agent.attempts.session import new_session
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import Gpu
from passnet.judge.settings import JudgeSettings, RunSettings
from tests.agent.attempts import SUITE, attempt, evaluation

NVIDIA_SMI = "#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 580.95.05, 81559, 1980, 2619'\n"


@pytest.mark.parametrize(
    ("device", "gpu"),
    [("cuda", Gpu("NVIDIA H100 80GB HBM3", "580.95.05", 81559, 1980, 2619)), ("cpu", None)],
)
def test_an_attempt_on_a_gpu_records_it_and_one_on_a_cpu_records_none(
    device: str, gpu: Gpu | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(NVIDIA_SMI)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    settings = AgentSettings("compiler", run=RunSettings(JudgeSettings(device=device)))
    session = new_session(
        SUITE.tasks[0], settings, None
    )  # which submits nothing, so judges nothing
    assert attempt_record(session, SUITE, settings, 0).environment.gpu == gpu


def test_what_was_not_timed_before_is_submitted_by_a_guarded_attempt_unless_it_then_loses() -> None:
    session = new_session(SUITE.tasks[0], AgentSettings("compiler", is_guarded=True), None)
    session.evaluations = [evaluation(1, None)]
    assert [submitted(session, score) for score in (None, 1.2, 0.9)] == [0, 0, None]
    session.evaluations = [evaluation(1, 1.1)]
    assert submitted(session, 0.9) == 0


def test_an_attempt_says_of_its_submission_that_it_was_not_timed() -> None:
    settings = AgentSettings("compiler", is_judged_anew=False)
    session = new_session(SUITE.tasks[0], settings, None)
    session.evaluations = [evaluation(1, None)]
    record = attempt_record(session, SUITE, settings, 0)
    assert (record.best, record.score, record.last_score) == (0, None, None)
    assert record.untimed is not None and "was not timed" in record.untimed
    assert record.files == session.evaluations[0].files and attempt().untimed is None
