"""A run on a Ray cluster: a judge that is lost loses nothing, and nothing is recorded twice."""

import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.bench.environment import describe_environment
from passnet.bench.run import HERE, JudgeOrder, Judges, RunSettings, judge_task, run_suite
from tests.bench.runs import QUICK, command, lines, passnet, write_small_suite
from tests.conftest import runs

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def children(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    below: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            below += [child, *children(child)]
    return below


def judges_of(driver: int) -> list[int]:
    """The actors of a driver that judge: those that started the parents of workers."""
    found = []
    for pid in children(driver):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        if words.startswith(b"ray::_Actor") and children(pid):
            found.append(pid)
    return found


@needs_ray
@pytest.mark.slow
def test_of_two_judges_one_is_killed_and_no_trial_is_lost_or_repeated(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 6)
    out = tmp_path / "run"
    words = ("bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", "null@direct",
             "--out", out, "--executor", "ray", "--jobs", 2, "--seconds", "0.3", *QUICK[2:])  # fmt: skip
    run = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(judges := judges_of(run.pid)) < 2:
        assert run.poll() is None and time.monotonic() < deadline, "two judges did not start"
        time.sleep(0.1)
    for judge in judges:
        os.kill(judge, signal.SIGSTOP)  # so that neither is done before one is killed
    os.kill(judges[0], signal.SIGKILL)
    os.kill(judges[1], signal.SIGCONT)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors.decode()
    keys = [(trial["graph"], trial["candidate"]) for trial in lines(out)]
    assert len(keys) == len(set(keys)) == 2 * 7
    assert {trial["status"] for trial in lines(out)} == {"ok"}
    machines = {trial["machine"] for trial in lines(out)}
    assert len(machines) == 1 and None not in machines
    before = (out / "trials.jsonl").read_bytes()
    again = passnet(*words, "--resume")
    assert again.returncode == 0, again.stderr
    assert (out / "trials.jsonl").read_bytes() == before, "a finished run is not measured again"
