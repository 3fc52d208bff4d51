"""`passnet graph show`, of what `passnet extract` writes."""

from pathlib import Path

import pytest

from passnet.data.capture.store import GraphSource, write_set
from passnet.judge.suite.suite import make_suite, write_suite
from passnet.judge.task import TaskGraph
from tests.bench.runs import captured, passnet
from tests.graph.programs import moved_index
from tests.judge.folders import small_graph

SOURCES = GraphSource("timm/first", 0), GraphSource("timm/second", 3)
ROWS = [captured(small_graph((32, 16 * size)).graph, *SOURCES) for size in (1, 2, 3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of three captured graphs."""
    write_set(tmp_path, ROWS, {})
    return tmp_path


def test_the_first_captured_graph_is_shown_op_by_op(folder: Path) -> None:
    shown = passnet("graph", "show", folder)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == f"graph 1 of 3: {ROWS[0].full}"
    assert lines[1] == "sources: 2, the first timm/first"
    assert "  in_0: float32[32, 16]  mean 0, std 1" in lines
    assert "    1  tmp_1 = torch.relu(tmp_0)   # float32[32, 16]" in lines


def test_a_captured_graph_is_chosen_by_its_number_or_its_fingerprint(folder: Path) -> None:
    file = folder / "graphs-000.parquet"
    by_number = passnet("graph", "show", file, "--graph", 3, "--no-shapes")
    by_fingerprint = passnet("graph", "show", folder, "--graph", ROWS[2].full[:12], "--no-shapes")
    assert by_number.stdout == by_fingerprint.stdout
    assert by_number.stdout.startswith(f"graph 3 of 3: {ROWS[2].full}\n")
    assert "in_0: float32[32, 48]" in by_number.stdout and "   #" not in by_number.stdout


def test_a_graph_that_is_not_there_is_refused_with_how_many_there_are(folder: Path) -> None:
    for choice in ("4", "xyz"):
        refused = passnet("graph", "show", folder, "--graph", choice)
        assert refused.returncode == 2
        assert f"begins with {choice}; give a number from 1 to 3" in refused.stderr


def test_a_file_of_other_rows_is_refused(folder: Path) -> None:
    file = folder / "graphs-000.parquet"
    file.write_bytes(b"PAR1")
    refused = passnet("graph", "show", file)
    assert refused.returncode == 2 and "not a Parquet file of captured graphs" in refused.stderr


def test_a_graph_whose_ops_cannot_be_timed_is_drawn_without_times(tmp_path: Path) -> None:
    shifts = {"bad": 100, "good": 1}
    graphs = [TaskGraph(name, name, moved_index(shift)) for name, shift in shifts.items()]
    write_suite(tmp_path / "s.parquet", make_suite("s", graphs))
    shown = passnet("suite", "show", tmp_path / "s.parquet", "--svg", tmp_path / "out", "--times")
    assert shown.returncode == 0, shown.stderr
    assert "bad: drawn without times; eager torch op by op: IndexError" in shown.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"bad.svg", "good.svg"}
    assert "µs" in (tmp_path / "out" / "good.svg").read_text()
