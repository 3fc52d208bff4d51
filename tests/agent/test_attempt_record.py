"""The record of an attempt says what it was made on."""

from pathlib import Path

import pytest

from passnet.agent.attempt_record import attempt_record
from passnet.agent.session import new_session
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import Gpu
from passnet.bench.run import RunSettings
from passnet.judge.settings import JudgeSettings
from tests.agent.attempts import SUITE

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
