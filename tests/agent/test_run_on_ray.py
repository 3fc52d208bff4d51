"""Attempts of a program on a Ray cluster: a worker that is lost loses none of them."""

import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.core.records.serialise import read_lines
from tests.bench.ray_actors import judges_of
from tests.bench.runs import command, passnet, write_small_suite


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.slow
def test_of_two_workers_one_is_killed_and_no_attempt_is_lost_or_repeated(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    out = tmp_path / "run"
    work = ("--author", "compiler", "--executor", "ray", "--jobs", 2, "--attempts", 3)
    quick = ("--seconds", "0.05", "--self-tolerance", "1e9", "--rules", "open", "--call", "direct")
    words = ("agent", "run", "--suite", suite, "--out", out, *work, *quick)
    run = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (workers := judges_of(run.pid)):
        assert run.poll() is None and time.monotonic() < deadline, "no worker was seen at work"
        time.sleep(0.1)
    os.kill(workers[0], signal.SIGKILL)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors.decode()
    made = [(item.task, item.number) for item in read_lines(out / ATTEMPTS_FILE, Attempt)]
    tasks = ("add_relu", "mul_relu")
    assert sorted(made) == [(task, number) for task in tasks for number in range(3)]
    assert {path.name for path in (out / "passes").iterdir()} == set(tasks)
    before = (out / ATTEMPTS_FILE).read_bytes()
    again = passnet(*words, "--resume")
    assert again.returncode == 0, again.stderr
    assert (out / ATTEMPTS_FILE).read_bytes() == before
