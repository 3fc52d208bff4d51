"""Runs over several nets: resumed, killed, repeated, on several workers and on Ray."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from passnet.core.jobs.executors import executor, run_ray
from passnet.core.jobs.process import JobLimits
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, LineWriter, write_json
from passnet.data.capture.record import CaptureSettings, NetRecord
from passnet.data.capture.run import ExtractRunInfo, merge_runs, read_records, run_extract
from passnet.data.capture.store import GRAPHS
from passnet.errors import InputError
from tests.bench.ray_actors import cluster
from tests.data.capture import own

HERE = own.__file__
NAMES = ("small", "broken", "named", "by_keyword", "raises_when_built")
ENTRIES = [f"{HERE}:{name}" for name in NAMES]
SETTINGS = CaptureSettings(limits=JobLimits(60.0, 4096))


@pytest.mark.slow
def test_a_run_has_a_record_for_each_net_and_each_graph_once(tmp_path):
    reported = []
    records, manifest = run_extract(
        ENTRIES, SETTINGS, tmp_path, RunPlan(num_workers=2, progress=reported.append)
    )
    assert {record.entry for record in reported} == set(ENTRIES)
    assert [record.status for record in records].count("captured") == 4
    rows = list(GRAPHS.read(tmp_path / "graphs-000.parquet"))
    assert len(rows) == manifest.num_graphs == 5
    assert {source.entry for row in rows for source in row.sources} == set(ENTRIES[:4])


@pytest.mark.slow
def test_runs_of_the_same_nets_give_the_same_bytes(tmp_path):
    first = run_extract(ENTRIES, SETTINGS, tmp_path / "one", RunPlan(num_workers=2))[1]
    second = run_extract(ENTRIES[::-1], SETTINGS, tmp_path / "two", RunPlan(num_workers=1))[1]
    assert first == second
    merged = merge_runs([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert merged.shards == first.shards
    assert merge_runs([tmp_path / "both", tmp_path / "one"], tmp_path / "again") == merged


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(tmp_path):
    run_extract(ENTRIES[:2], SETTINGS, tmp_path)
    with pytest.raises(InputError, match="--resume"):
        run_extract(ENTRIES, SETTINGS, tmp_path)
    with pytest.raises(InputError, match="other settings"):
        run_extract(ENTRIES, CaptureSettings(train=True), tmp_path, RunPlan(resume=True))
    reported = []
    records, _ = run_extract(
        ENTRIES, SETTINGS, tmp_path, RunPlan(resume=True, progress=reported.append)
    )
    assert [record.entry for record in reported] == ENTRIES[2:]
    assert len(records) == len(ENTRIES)
    again = []
    run_extract(
        ENTRIES, SETTINGS, tmp_path, RunPlan(resume=True, retry=True, progress=again.append)
    )
    assert [record.entry for record in again] == ENTRIES[-1:]


@pytest.mark.slow
def test_a_kill_loses_at_most_the_net_in_flight(tmp_path):
    command = [sys.executable, "-m", "passnet.cli", "extract", *ENTRIES, "--out", str(tmp_path)]
    running = subprocess.Popen(
        [*command, "--jobs", "1", "--timeout", "60", "--memory", "4096"], start_new_session=True
    )
    path = tmp_path / "nets.jsonl"
    deadline = time.monotonic() + 120
    while len(read_records(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    with path.open("ab") as stream:
        stream.write(b'{"entry": "torn')
    before = read_records(tmp_path)
    assert len(before) >= 2
    _, manifest = run_extract(ENTRIES, SETTINGS, tmp_path, RunPlan(resume=True))
    after = read_records(tmp_path)
    assert {name: after[name] for name in before} == before
    assert manifest.shards == run_extract(ENTRIES, SETTINGS, tmp_path / "whole")[1].shards


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        run_extract(ENTRIES[:1], SETTINGS, tmp_path / "file" / "out")


def test_a_changed_file_is_refused_before_anything_is_captured(tmp_path):
    write_json(tmp_path / "run.json", ExtractRunInfo(SCHEMA_VERSION, SETTINGS))
    with LineWriter(tmp_path / "nets.jsonl") as writer:
        writer.write(NetRecord(ENTRIES[0], "captured", file_hash="0" * 64))
    with pytest.raises(InputError, match=r"own.py: has changed since .*; add --retry"):
        run_extract(ENTRIES[:2], SETTINGS, tmp_path, RunPlan(resume=True))


@pytest.mark.slow
def test_a_net_of_ones_own_whose_file_has_changed_is_not_taken_for_captured(tmp_path):
    file = tmp_path / "net.py"
    text = "import torch\n\ndef make():\n    return torch.nn.{}(), (torch.ones(2, 4),)\n"
    file.write_text(text.format("ReLU"))
    entries, out = [f"{file}:make"], tmp_path / "out"
    [before], _ = run_extract(entries, SETTINGS, out)
    file.write_text(text.format("Tanh"))
    with pytest.raises(InputError, match=r"net.py: has changed since .*; add --retry"):
        run_extract(entries, SETTINGS, out, RunPlan(resume=True))
    [after], _ = run_extract(entries, SETTINGS, out, RunPlan(resume=True, retry=True))
    assert before.graphs[0].structure != after.graphs[0].structure
    assert run_extract(entries, SETTINGS, out, RunPlan(resume=True))[0] == [after]


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_an_error_that_loses_nothing(tmp_path):
    run_extract(ENTRIES[:1], SETTINGS, tmp_path)
    records = tmp_path / "nets.jsonl"
    records.write_bytes(records.read_bytes() * 30)  # so that this file is full before others
    limit = records.stat().st_size + 100
    limited = (
        "import resource, sys; from passnet.cli import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", limited, "extract", *ENTRIES, "--out", str(tmp_path)]
    options = ["--resume", "--timeout", "60", "--memory", "4096", "--jobs", "1"]
    completed = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "nets.jsonl: File too large" in completed.stderr and "--resume" in completed.stderr
    assert "1 captured nets are safe" in completed.stderr
    records, _ = run_extract(ENTRIES, SETTINGS, tmp_path, RunPlan(resume=True))
    assert len(records) == len(ENTRIES)


def test_an_unknown_executor_lists_the_known():
    with pytest.raises(InputError, match="local, ray"):
        executor("cloud")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_ray_gives_the_same_and_survives_a_worker_that_dies(tmp_path):
    victim = tmp_path / "victim"
    dying = tmp_path / "dying.py"
    dying.write_text(
        "import os, signal, pathlib\n"
        "import torch\n"
        "def net():\n"
        f"    flag = pathlib.Path({str(victim)!r})\n"
        "    if not flag.exists():\n"
        "        flag.write_text('')\n"
        "        worker = int(os.popen(f'ps -o ppid= -p {os.getppid()}').read())\n"
        "        os.kill(worker, signal.SIGKILL)\n"
        "        os.kill(os.getppid(), signal.SIGKILL)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return torch.nn.Linear(4, 2), torch.ones(1, 4)\n"
    )
    entries = [f"{dying}:net", *ENTRIES]
    with cluster():
        records, _ = run_extract(
            entries, SETTINGS, tmp_path / "ray", RunPlan(num_workers=2, executor=run_ray)
        )
    assert victim.exists()
    assert {record.entry: record.status for record in records}[f"{dying}:net"] == "captured"
    merged = merge_runs([tmp_path / "ray"], tmp_path / "merged")
    local = run_extract(entries, SETTINGS, tmp_path / "local")[1]
    assert merged.shards == local.shards
