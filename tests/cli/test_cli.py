"""The command line: what it prints, how it exits, how fast it starts."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from passnet.graph.text.files import GraphSample, write_sample
from passnet.judge.suite.suite import load_suite
from tests.bench.runs import passnet, write_small_suite
from tests.conftest import ROOT
from tests.judge.folders import small_graph


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three graph directories."""
    for name in ("a", "deep/b", "deep/c"):
        graph = small_graph().graph
        write_sample(tmp_path / "graphs" / name, GraphSample(graph, {"framework": "torch"}))
    return tmp_path / "graphs"


def test_graph_check_finds_graphs_recursively_and_sums_up(folder: Path) -> None:
    done = passnet("graph", "check", folder, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 graphs parse and round-trip, 3 run under fake tensors; 6 ops" in done.stdout
    assert "1 structures, 1 distinct" in done.stdout


def test_graph_check_names_every_failure_and_exits_with_one(folder: Path) -> None:
    (folder / "a" / "model.py").write_text("import os\nos.system('true')\n")
    (folder / "deep" / "b" / "weight_meta.py").write_text("class X:\n    name = f()\n")
    done = passnet("graph", "check", folder, "--no-build")
    assert done.returncode == 1
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failures) == 2 and "model.py:2: only imports" in failures[0]
    assert "weight_meta.py:2: expected a literal" in failures[1]
    assert "1 of 3 graphs parse" in done.stdout
    result = json.loads(passnet("graph", "check", folder, "--no-build", "--json").stdout)
    assert (result["graphs"], result["parsed"], len(result["failures"])) == (3, 1, 2)


def test_a_graph_that_parses_but_does_not_build_is_told_apart(folder: Path) -> None:
    path = folder / "a" / "model.py"
    path.write_text(path.read_text().replace("torch.relu(", "torch.load("))
    done = passnet("graph", "check", folder, "--jobs", 1)
    assert done.returncode == 0
    assert "parses, but does not build" in done.stdout and "torch.load is not on" in done.stdout
    assert "3 of 3 graphs parse and round-trip, 2 run" in done.stdout


def test_a_folder_without_graphs_is_a_usage_error(tmp_path: Path) -> None:
    done = passnet("graph", "check", tmp_path)
    assert done.returncode == 2 and "holds no graph" in done.stderr
    done = passnet("graph", "check", tmp_path / "gone")
    assert done.returncode == 2 and "no such directory" in done.stderr


def test_graph_show_prints_arguments_and_shapes(folder: Path) -> None:
    done = passnet("graph", "show", folder / "a")
    assert done.returncode == 0, done.stderr
    assert "in_0: float32[64, 64]" in done.stdout
    assert "tmp_1 = torch.relu(tmp_0)   # float32[64, 64]" in done.stdout


def test_graphs_of_nested_folders_are_drawn_in_folders(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "a", tmp_path / "nested" / "b" / "c")
    shown = passnet("suite", "show", tmp_path / "nested", "--svg", tmp_path / "svg")
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "svg" / "b" / "c.svg").is_file()


@pytest.mark.slow
def test_suites_are_listed_shown_and_drawn(tmp_path: Path) -> None:
    listed = passnet("suite", "list", "demo", "--json")
    assert len(json.loads(listed.stdout)) >= 12
    words = ("show", "demo", "--task", "rms_norm")
    shown = passnet("suite", *words, "--svg", tmp_path / "svg")
    assert shown.returncode == 0 and "rsqrt" in shown.stdout
    assert len(list((tmp_path / "svg").glob("rms_norm-*.svg"))) == 6


def test_bench_show_prints_the_tables_of_a_run(tmp_path: Path) -> None:
    shown = passnet("bench", "show", ROOT / "baselines" / "demo", "--task", "rms_norm")
    assert shown.returncode == 0 and "AS by task" in shown.stdout
    done = passnet("bench", "show", tmp_path)
    assert done.returncode == 2 and "holds no trials.jsonl of a run" in done.stderr


def test_a_check_names_the_graphs_on_which_a_wrong_program_passes(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    out = tmp_path / "sound.parquet"
    done = passnet("suite", "check", suite, "--quick", "--out", out, "--new-version", "1.1")
    assert done.stdout.splitlines()[:-1] == [
        "0 of 2 graphs of small let a wrong program pass on recorded and fresh inputs",
        "0 of 2 graphs of small are unsound as they are",
    ]
    assert (load_suite(str(out)).version, len(load_suite(str(out)).graphs)) == ("1.1", 2)
    named = ("--task", "mul_relu", "--quick", "--json")
    found = json.loads(passnet("suite", "check", suite, *named).stdout)
    assert [graph["graph"] for graph in found] == ["mul_relu-0"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_is_refused_plainly_where_there_is_none(tmp_path: Path) -> None:
    done = passnet("bench", "run", "--candidate", "eager", "--device", "cuda", "--out",
                   tmp_path / "run")  # fmt: skip
    assert done.returncode == 2 and "device cuda is not on this machine" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_capture_written_to_a_folder_can_be_checked_and_judged(tmp_path: Path) -> None:
    import torch

    import passnet as package

    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    [graph] = package.capture(net, torch.ones(2, 8))
    write_sample(tmp_path / "graphs" / "net", GraphSample(graph))
    assert passnet("graph", "check", tmp_path / "graphs").returncode == 0
    done = passnet("bench", "run", "--suite", tmp_path / "graphs", "--candidate", "null@direct",
                   "--out", tmp_path / "run", "--self-tolerance", "1e9", "--json")  # fmt: skip
    assert json.loads(done.stdout)["columns"]["subgraph_correct"] == 1.0, done.stderr
    shutil.rmtree(tmp_path / "run")
