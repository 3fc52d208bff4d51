"""Training data made and judged on a Ray cluster: a worker that is lost loses none of it."""

import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.core.jobs.executors import run_ray
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.judge.suite.suite import load_suite, read_suite_keys
from passnet_loops.data.build import (
    VERDICTS_FILE,
    DataInfo,
    Excluded,
    data_run,
    merge_rows,
    mine_rows,
    read_training,
    row_key,
)
from passnet_loops.data.judge_rows import judging_run
from passnet_loops.settings import DataSettings
from tests.bench.ray_actors import cluster, judges_of
from tests.bench.runs import command, passnet
from tests.loops.test_training_rows import captured

on_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def test_jobs_without_a_cluster_are_refused(tmp_path: Path) -> None:
    words = ("train", "judge", tmp_path, "--out", tmp_path / "out", "--jobs", 2)
    refused = passnet(*words)
    assert refused.returncode == 2 and "--jobs goes with --executor ray" in refused.stderr


@pytest.mark.slow
@on_ray
def test_of_two_workers_one_is_killed_and_no_row_is_lost_or_judged_twice(tmp_path: Path) -> None:
    suite, keys = load_suite("demo"), read_suite_keys(["demo-small"])
    graphs = [task.graphs[0] for task in suite.tasks if task.name != "gelu_tanh"]
    info = DataInfo(SCHEMA_VERSION, "captures", keys.hashes, DataSettings(max_windows=4))
    made, data, out = tmp_path / "made", tmp_path / "data", tmp_path / "judged"
    with cluster():
        plan = RunPlan(executor=run_ray, num_workers=2)
        mine_rows(list(map(captured, graphs)), made, info, Excluded(keys), plan)
    assert len(data_run(made).records()) == len(graphs)
    manifest = merge_rows([made], data, info.settings, keys, has_unjudged=True)
    assert manifest.num_rows > 12, "enough to be killed among"
    _, rows = read_training(data)

    words = ("train", "judge", data, "--out", out, "--executor", "ray", "--jobs", 2)
    run = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (workers := judges_of(run.pid)) or not (out / VERDICTS_FILE).exists():
        assert run.poll() is None and time.monotonic() < deadline, "no worker was seen at work"
        time.sleep(0.05)
    os.kill(workers[0], signal.SIGKILL)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors.decode()
    assert len((out / VERDICTS_FILE).read_bytes().splitlines()) == len(rows)
    verdicts = judging_run(out).records()
    assert set(verdicts) == set(map(row_key, rows))
    assert "correct" in {verdict.verdict for verdict in verdicts.values()}
