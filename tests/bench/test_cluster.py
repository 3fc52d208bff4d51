"""A run on a Ray cluster: a judge that is lost loses nothing, and nothing is recorded twice."""

import os
import signal
import subprocess
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.bench.cluster import _machines, _open_judge
from passnet.bench.environment import describe_environment
from passnet.bench.run import JudgeOrder
from passnet.core.jobs.actors import this_machine
from passnet.errors import InputError
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import Suite, load_suite
from tests.bench.ray_actors import judges_of
from tests.bench.runs import QUICK, command, lines, passnet, write_small_suite
from tests.judge.folders import GOOD, write_passes

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@needs_ray
@pytest.mark.slow
def test_of_two_judges_one_is_killed_and_no_trial_is_lost_or_repeated(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 6)
    out = tmp_path / "run"
    candidates = ("--candidate", "eager", "--candidate", "null@direct")
    work = ("--executor", "ray", "--jobs", 2, "--seconds", "0.3", *QUICK[2:])
    words = ("bench", "run", "--suite", suite, *candidates, "--out", out, *work)
    run = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (judges := judges_of(run.pid)):
        assert run.poll() is None and time.monotonic() < deadline, "no judge was seen at work"
        time.sleep(0.1)
    os.kill(judges[0], signal.SIGKILL)
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


QUICK_JUDGE = JudgeSettings(
    timing=TimingPlan(seconds=0.01, min_rounds=3, max_rounds=3), self_tolerance=1e9
)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))


def order_of(suite: Suite, candidate: str, **fields: object) -> JudgeOrder:
    entries = tuple(parse_candidate(word, suite.tasks) for word in ("eager", candidate))
    order = JudgeOrder(entries, RunSettings(QUICK_JUDGE), None, {}, describe_environment())
    return replace(order, **fields)  # type: ignore[arg-type]


def test_a_machine_of_another_kind_is_refused(suite: Suite) -> None:
    order = order_of(suite, "null")
    other = replace(order.environment, cpu="a faster one")
    with pytest.raises(InputError, match="measured with cpu a faster one, and machine"):
        _open_judge(replace(order, environment=other), suite.tasks)


def test_a_machine_without_the_pass_folders_or_with_others_is_refused(
    tmp_path: Path, suite: Suite
) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    order = order_of(suite, str(folder))
    (folder / "more.py").write_text("")
    with pytest.raises(InputError, match="has other files in"):
        _open_judge(order, suite.tasks)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="put it where all machines of the cluster see it"):
        _open_judge(order, suite.tasks)


@pytest.mark.slow
def test_a_task_is_judged_under_all_candidates_where_another_machine_judged_some(
    suite: Suite,
) -> None:
    task = suite.tasks[0]
    graph = task.graphs[0].name
    for machine, wanted in (("far away", ["eager", "null@direct"]), (this_machine(), ["eager"])):
        order = order_of(suite, "null@direct", finished={(graph, "null@direct"): machine})
        assert _machines(task, order) == {machine}
        [(_, trials)] = _open_judge(order, suite.tasks)(task)
        assert [trial.candidate for trial in trials] == wanted
        assert {trial.machine for trial in trials} == {this_machine()}
