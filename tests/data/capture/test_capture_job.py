"""Nets that crash, hang or eat memory are records; the rest of a run goes on."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.jobs.process import JobLimits, JobRunner
from passnet.data.capture.record import CaptureSettings
from passnet.data.capture.run import capture_isolated
from tests.data.capture import own
from tests.processes import runs, wait_until

HERE = own.__file__
SETTINGS = replace(CaptureSettings(), limits=JobLimits(60.0, 4096))


def children(pid: int) -> list[int]:
    return [int(child) for child in os.popen(f"ps -o pid= --ppid {pid}").read().split()]


@pytest.fixture(scope="module")
def worker():
    with JobRunner() as runner:
        yield runner


def test_a_net_is_captured_with_time_and_memory(worker):
    outcome = capture_isolated(worker, f"{HERE}:small", SETTINGS)
    assert outcome.record.status == "captured" and outcome.rows, outcome.record
    assert outcome.record.wall_s and outcome.record.peak_mib and outcome.record.peak_mib > 50


def test_a_crash_is_a_record(worker):
    record = capture_isolated(worker, f"{HERE}:dies", SETTINGS).record
    assert (record.status, record.cause) == ("failed", "crash")
    assert "signal 11" in str(record.error)


def test_a_crash_whose_log_has_the_word_memory_is_no_lack_of_it(worker):
    record = capture_isolated(worker, f"{HERE}:dies_about_memory_format", SETTINGS).record
    assert record.cause == "crash" and "no GPU here" in str(record.error)


def test_a_hang_is_a_record(worker):
    limits = JobLimits(1.0, 4096)
    record = capture_isolated(worker, f"{HERE}:hangs", replace(SETTINGS, limits=limits)).record
    assert (record.cause, record.error) == ("timeout", "not done in 1 s")
    assert record.wall_s is not None and record.wall_s < 10


def test_eating_memory_is_a_record(worker):
    record = capture_isolated(worker, f"{HERE}:eats_memory", SETTINGS).record
    assert record.cause == "out_of_memory"


def test_what_a_net_starts_is_ended_with_it(worker):
    capture_isolated(worker, f"{HERE}:leaves_a_child", SETTINGS)
    assert worker._parent is not None
    assert not children(worker._parent.pid)
    assert "passnet.core.jobs.process" not in os.popen("ps -eo ppid,args | grep '^ *1 '").read()


def test_an_unknown_function_is_a_record(worker):
    record = capture_isolated(worker, f"{HERE}:nothing", SETTINGS).record
    assert record.cause == "no_entry" and "no function 'nothing'" in str(record.error)


@pytest.mark.slow
def test_a_parent_that_is_gone_is_started_again(worker):
    capture_isolated(worker, f"{HERE}:small", SETTINGS)
    assert worker._parent is not None
    os.kill(worker._parent.pid, signal.SIGKILL)
    assert capture_isolated(worker, f"{HERE}:small", SETTINGS).record.status == "captured"


RUNS_A_TASK = """
import sys
from passnet.core.jobs.process import Job, JobLimits, JobRunner
job = Job("waiting:waits", sys.argv[1], JobLimits(60.0, 1024), "waiting:nothing")
with JobRunner() as worker:
    worker.run(job)
"""
WAITS = """
import pathlib, time

def nothing(_):
    pass

def waits(payload, folder):
    pathlib.Path(payload, "begun").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("victim", ["its user", "its parent"])
def test_a_task_ends_with_whoever_wants_it_and_with_its_parent(victim: str, tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITS)
    command = [sys.executable, "-c", RUNS_A_TASK, str(tmp_path)]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    user = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL
    )
    try:
        wait_until((tmp_path / "begun").exists, "the task does not begin", 30)
        [parent] = children(user.pid)
        [task] = children(parent)
        os.kill(user.pid if victim == "its user" else parent, signal.SIGKILL)
        wait_until(lambda: not runs(task) and not runs(parent), f"a process outlives {victim}", 30)
    finally:
        user.kill()
        user.wait()
