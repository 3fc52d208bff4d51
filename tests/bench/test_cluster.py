"""A run on a Ray cluster: a judge that is lost loses nothing, and nothing is recorded twice."""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.bench.cluster import _open_judge, _unpacked, most_common, task_order
from passnet.bench.environment import describe_environment
from passnet.bench.run import JudgeOrder
from passnet.core.jobs.actors import this_machine
from passnet.errors import InputError, PassFolderError
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import Suite, load_suite
from passnet.passes.folder import hash_folders, inspect_folder
from tests.bench.ray_actors import another_compiler, judges_of, nodes
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
        assert run.poll() is None, run.communicate()[1].decode()
        assert time.monotonic() < deadline, "no judge was seen at work"
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


@needs_ray
@pytest.mark.slow
def test_a_node_of_another_kind_is_left_out_and_a_lost_node_loses_no_trial(tmp_path: Path) -> None:
    """The odd node comes first, and the candidate's files last to the node that is left."""
    suite = write_small_suite(tmp_path / "small.parquet", 6)
    passes = write_passes(tmp_path / "passes", GOOD)
    out = tmp_path / "run"
    candidates = ("--candidate", "eager", "--candidate", f"{passes}@direct")
    work = ("--executor", "ray", "--jobs", 3, "--seconds", "0.3", *QUICK[2:])
    words = ("bench", "run", "--suite", suite, *candidates, "--out", out, *work)
    odd = another_compiler(tmp_path / "bin")
    with nodes(odd, {}, {}) as cluster:
        node = cluster.head_node.node_id[:8]
        run = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while not (out / "trials.jsonl").exists() or not (out / "trials.jsonl").read_bytes():
            assert run.poll() is None, run.communicate()[1].decode()
            assert time.monotonic() < deadline, "no trial was recorded"
            time.sleep(0.1)
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        _, errors = run.communicate(timeout=300)
    text = errors.decode()
    assert run.returncode == 0, text
    assert f"(node {node}): it has compiler g++ of another machine, and the run is" in text
    trials = lines(out)
    keys = [(trial["graph"], trial["candidate"]) for trial in trials]
    assert len(keys) == len(set(keys)) == 2 * 7
    assert {trial["status"] for trial in trials} == {"ok", "no_match"}


QUICK_JUDGE = JudgeSettings(
    timing=TimingPlan(seconds=0.01, min_rounds=3, max_rounds=3, keeps_awake=False),
    self_tolerance=1e9,
)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))


def order_of(suite: Suite, candidate: str, **fields: object) -> JudgeOrder:
    entries = tuple(parse_candidate(word, suite.tasks) for word in ("eager", candidate))
    order = JudgeOrder(entries, RunSettings(QUICK_JUDGE), None, {}, describe_environment())
    return replace(order, **fields)  # type: ignore[arg-type]


def test_a_machine_of_another_kind_is_refused(suite: Suite) -> None:
    environment = replace(describe_environment(), cpu="a faster one")
    with pytest.raises(InputError, match="it has cpu .*, and the run is measured with a faster"):
        _open_judge(environment, RunSettings(QUICK_JUDGE))


def test_the_environment_of_most_machines_is_the_run_s() -> None:
    ours = describe_environment()
    odd = replace(ours, compiler="another", load=ours.load + 1)
    assert most_common([odd, ours, replace(ours, load=9.0)]) == ours


@pytest.mark.parametrize("is_single", [True, False], ids=["one folder", "a folder a task"])
def test_a_machine_gets_the_files_of_a_task_alone(
    tmp_path: Path, suite: Suite, is_single: bool
) -> None:
    """The folder is gone when the task is judged: as on a machine that never had it."""
    folder = write_passes(tmp_path / "passes" / ("" if is_single else "add_relu"), GOOD)
    (folder / "inner").mkdir()
    (folder / "inner" / "table.bin").write_bytes(bytes(range(256)))
    (folder / "alias.py").symlink_to("inner/table.bin")
    order = order_of(suite, f"{tmp_path / 'passes'}@direct")
    code_hash = hash_folders([folder])
    with_code, without_code = (task_order(order, task) for task in suite.tasks)
    assert (without_code.folders[1] is None) is not is_single
    assert {graph for graph, _ in with_code.finished} == set()
    shutil.rmtree(tmp_path / "passes")
    entry = _unpacked(with_code.entries[1], with_code.folders[1], tmp_path / "far", "add_relu")
    candidate = entry.for_task("add_relu")
    assert candidate is not None and candidate.passes is not None
    assert hash_folders([Path(candidate.passes)]) == code_hash
    assert Path(candidate.passes).is_relative_to(str(candidate.root))
    assert (tmp_path / "far") in Path(candidate.passes).parents


@pytest.mark.slow
def test_a_machine_judges_folders_that_it_never_had(tmp_path: Path, suite: Suite) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    order = order_of(suite, f"{folder}@direct")
    items = [task_order(order, task) for task in suite.tasks]
    shutil.rmtree(folder)
    judge = _open_judge(order.environment, order.settings)
    statuses = [trial.status for item in items for _, trials in judge(item) for trial in trials]
    assert statuses == ["ok", "ok", "ok", "no_match"]


def test_a_folder_with_a_pipe_fails_on_its_machine_too(tmp_path: Path, suite: Suite) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    order = order_of(suite, f"{folder}@direct")
    os.mkfifo(folder / "pipe")
    item = task_order(order, suite.tasks[0])
    assert "a device, pipe or socket" in str(item.folders[1])
    shutil.rmtree(folder)
    entry = _unpacked(item.entries[1], item.folders[1], tmp_path / "far", "add_relu")
    candidate = entry.for_task("add_relu")
    assert candidate is not None and candidate.passes is not None
    with pytest.raises(PassFolderError):
        inspect_folder(Path(candidate.passes))


@pytest.mark.slow
def test_a_task_is_judged_under_all_candidates_where_another_machine_judged_some(
    suite: Suite,
) -> None:
    task = suite.tasks[0]
    graph = task.graphs[0].name
    for machine, wanted in (("far away", ["eager", "null@direct"]), (this_machine(), ["eager"])):
        recorded = {(graph, "null@direct"): machine, ("another", "eager"): "elsewhere"}
        order = order_of(suite, "null@direct", finished=recorded)
        item = task_order(order, task)
        assert item.machines == {machine} and item.finished == {(graph, "null@direct")}
        [(_, trials)] = _open_judge(order.environment, order.settings)(item)
        assert [trial.candidate for trial in trials] == wanted
        assert {trial.machine for trial in trials} == {this_machine()}
