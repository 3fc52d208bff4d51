"""A job runs in a process of its own: what it leaves comes back, and how it ended."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from passnet.core.jobs.process import (
    MAX_LOG_BYTES,
    MAX_RESULT_BYTES,
    Job,
    JobLimits,
    JobRunner,
)
from passnet.errors import InputError, WorkerError

HERE = "tests.core.jobs.failing_jobs"
SHORT = JobLimits(1.0, 512)
LONG = JobLimits(60.0, 1024)


@pytest.fixture(scope="module")
def runner() -> Iterator[JobRunner]:
    with pytest.MonkeyPatch.context() as patched:  # jobs import nothing from where they are started
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)
        with JobRunner() as opened:
            yield opened


def job(function: str, argument: str = "a", limits: JobLimits = LONG) -> Job:
    return Job(f"{HERE}:{function}", "net", limits, f"{HERE}:prepare", argument)


def test_a_record_and_rows_come_back(runner: JobRunner) -> None:
    outcome = runner.run(job("writes")).outcome(dict[str, object])
    assert outcome is not None and outcome.rows == b"rows"
    assert outcome.record == {"payload": "net", "prepared": ["a"]}


def test_a_parent_is_prepared_anew_for_another_argument(runner: JobRunner) -> None:
    outcome = runner.run(job("writes", "b")).outcome(dict[str, object])
    assert outcome is not None and outcome.record["prepared"] == ["b"]


def test_a_job_that_raises_leaves_its_log_and_no_outcome(runner: JobRunner) -> None:
    result = runner.run(job("says_and_fails"))
    assert (result.end.status, result.end.signal, result.end.timed_out) == (1, None, False)
    assert result.log.startswith("about to fail") and result.failure.endswith("no such net")
    assert result.outcome(dict[str, object]) is None


def test_a_job_that_hangs_is_ended_in_time(runner: JobRunner) -> None:
    result = runner.run(job("hangs", limits=SHORT))
    assert result.end.timed_out and result.failure == "not done in 1 s"


def test_a_signal_is_named(runner: JobRunner) -> None:
    result = runner.run(job("dies"))
    assert result.end.signal == 9 and result.failure == "ended by signal 9"


def test_a_record_of_another_type_is_refused(runner: JobRunner) -> None:
    with pytest.raises(InputError, match="not a valid list"):
        runner.run(job("writes")).outcome(list[int])


def test_a_parent_that_cannot_be_prepared_is_our_own_failure() -> None:
    with JobRunner() as runner, pytest.raises(WorkerError, match="ends before its job"):
        runner.run(Job(f"{HERE}:writes", "", SHORT, f"{HERE}:no_such_function"))


def test_a_job_that_finds_no_room_for_its_results_has_not_failed_by_itself(
    runner: JobRunner,
) -> None:
    with pytest.raises(WorkerError, match=f"^{tempfile.gettempdir()}: .*make room, or set TMPDIR"):
        runner.run(job("finds_no_room"))
    assert "elsewhere" in runner.run(job("finds_no_room_elsewhere")).failure


def test_a_job_leaves_no_folder_behind(
    runner: JobRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner.run(job("dies"))
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_place_of_rows_is_a_failure_and_does_not_hang(runner: JobRunner) -> None:
    result = runner.run(job("leaves_a_pipe"))
    assert result.outcome(dict[str, object]) is None
    assert result.failure == "rows.parquet: not a file, not read"


def test_what_a_job_leaves_takes_no_more_memory_than_is_allowed(runner: JobRunner) -> None:
    result = runner.run(job("leaves_a_long_log"))
    assert result.outcome(dict[str, object]) is not None
    assert len(result.log) <= MAX_LOG_BYTES and result.log.endswith("the end")
    result = runner.run(job("leaves_a_huge_record"))
    assert result.outcome(dict[str, object]) is None
    assert result.failure == f"record.json: larger than {MAX_RESULT_BYTES} bytes, not read"
