"""The record of an attempt names its machine, settings and versions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.attempt import (
    ATTEMPTS_FILE,
    Attempt,
    Message,
    ToolCall,
    read_attempts,
)
from passnet.agent.attempts.attempt_record import attempt_record, fitted, submitted
from passnet.agent.attempts.session import new_session
from passnet.agent.settings import AgentSettings
from passnet.agent.trajectories.stats import summarise
from passnet.bench.environment import Gpu
from passnet.core.records.serialise import LineWriter, encode
from passnet.errors import InputError, MeasureError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.trial import Trial
from tests.agent.attempts import CHAT, SUITE, attempt, evaluation

SETTINGS = AgentSettings("compiler", is_judged_anew=False)

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


def measured(speedup: float | None, smallest_t: int | None = -6) -> Trial:
    """A trial of the graph `relu-0`, unstable without a speedup."""
    status = "unstable" if speedup is None else "ok"
    return Trial("relu", "relu-0", "passes", status, smallest_t, speedup, speedup, speedup)


@pytest.mark.parametrize("score", [None, 1.02])
@pytest.mark.parametrize(
    ("trial", "is_submitted"),
    [
        (measured(1.2), True),
        (measured(None), True),
        (measured(0.95), False),
        (measured(1.2, None), False),
        (measured(None, None), False),
        (Trial("relu", "relu-0", "passes", "cheat"), False),
    ],
)
def test_a_guarded_attempt_submits_nothing_that_its_last_measurement_refutes(
    score: float | None, trial: Trial, is_submitted: bool
) -> None:
    session = new_session(SUITE.tasks[0], AgentSettings("compiler", is_guarded=True), None)
    session.evaluations = [evaluation(1, score)]
    assert submitted(session, [trial]) == (0 if is_submitted else None)
    assert submitted(session, []) == 0, "it was not measured anew"
    session.is_guarded = False
    assert submitted(session, [trial]) == 0


class BrokenDesk:
    """A judge whose own machinery fails."""

    settings, root = RunSettings(), "/nowhere"

    def judge(self, *_: object) -> list[Trial]:
        raise MeasureError("no worker can be started")


def test_an_attempt_that_could_not_be_measured_anew_is_repeated_and_counts_in_no_score() -> None:
    settings = AgentSettings("compiler")
    session = new_session(SUITE.tasks[0], settings, None)
    session.evaluations, session.is_submitted = [evaluation(1, 1.5)], True
    desk: Any = BrokenDesk()
    record = attempt_record(session, SUITE, settings, 0, desk)
    assert record.ending == "error" and "no worker can be started" in str(record.error)
    (stats,) = summarise([record])
    assert (stats.num_scored, stats.solved_ratio) == (0, None)


def test_an_attempt_says_of_its_submission_that_it_was_not_timed() -> None:
    settings = AgentSettings("compiler", is_judged_anew=False)
    session = new_session(SUITE.tasks[0], settings, None)
    session.evaluations = [evaluation(1, None)]
    record = attempt_record(session, SUITE, settings, 0)
    assert (record.best, record.score, record.last_score) == (0, None, None)
    assert record.untimed is not None and "was not timed" in record.untimed
    assert record.files == session.evaluations[0].files and attempt().untimed is None


def long_attempt() -> Attempt:
    """An attempt with ten states of 100 kB, of which the third cheats and the sixth is the best."""
    text = "0123456789abcde\n" * 6400
    states = [
        evaluation(number, 2.0 if number == 5 else 1.5, findings=("cheat",) * (number == 2))
        for number in range(10)
    ]
    states = [replace(state, files={"a.py": text + str(n)}) for n, state in enumerate(states)]
    return attempt(evaluations=tuple(states), best=5, score=2.0)


@pytest.mark.parametrize(("max_bytes", "left"), [(500_000, [2, 5, 8, 9]), (240_000, [2, 5])])
def test_a_long_attempt_loses_files_of_states_but_not_those_it_submits(
    max_bytes: int, left: list[int]
) -> None:
    long = long_attempt()
    short = fitted(long, max_bytes)
    assert max_bytes // 2 < len(encode(short)) < max_bytes
    assert [n for n, state in enumerate(short.evaluations) if state.has_files] == left
    assert all(bool(state.files) == state.has_files for state in short.evaluations)
    assert short.files == long.files and short.messages == long.messages
    assert fitted(long) == long, "a line holds it"


def test_an_attempt_of_long_messages_loses_their_ends() -> None:
    words = "word " * 20_000
    calls = (ToolCall("c", "create", f'{{"text": "{words}"}}'),)
    said = Message("assistant", words, calls, reasoning=words)
    long = attempt(messages=(*CHAT, said, Message("tool", words)))
    short = fitted(long, 100_000)
    assert 50_000 < len(encode(short)) < 100_000 and short.messages[: len(CHAT)] == CHAT
    assert short.messages[-1].content.startswith("word word ")
    assert short.messages[-1].content.endswith(" characters more)")


def test_a_run_with_a_long_attempt_can_be_read(tmp_path: Path) -> None:
    text = "0123456789abcde\n" * 8000
    files = {f"Table{number}.py": text for number in range(4)}
    states = tuple(evaluation(number, 1.5, **files) for number in range(40))
    session = new_session(SUITE.tasks[0], SETTINGS, None)
    session.evaluations, session.messages = list(states), CHAT
    record = attempt_record(session, SUITE, SETTINGS, 0)
    with LineWriter(tmp_path / ATTEMPTS_FILE) as writer:
        writer.write(record)
        with pytest.raises(InputError, match="more than the 16777216 of a line; not stored"):
            writer.write(replace(record, evaluations=states))
    assert read_attempts([tmp_path]) == [record] and record.files == files
