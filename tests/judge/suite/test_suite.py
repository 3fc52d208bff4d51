"""Suites: those that ship, what is stored and read back, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passnet.core.records.parquet import VERSION_KEY
from passnet.errors import GraphError, SuiteError
from passnet.graph.canonical import op_sequence
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.files import GraphSample, write_sample
from passnet.graph.values.inputs import make_inputs
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import (
    SUITES,
    Suite,
    load_suite,
    make_suite,
    row_of_graph,
    write_suite,
)
from passnet.judge.task import NetSource, TaskGraph
from tests.graph.programs import graph_of, program_of

RELU = program_of("x = torch.relu(a)", "y = x + b", returns="(y,)")
RELU_AGAIN = program_of("x = torch.relu(b)", "y = x + a", returns="(y, x)")
TANH = program_of("x = torch.tanh(a)", returns="(x,)")


@pytest.fixture
def suite() -> Suite:
    """Two tasks, the first with two graphs."""
    spec = TensorSpec("a", (2,), "int64", "cuda:0", None, None, 0, 3, (1, 2), "L_a_")
    scalar = TensorSpec("b", (), "bfloat16", mean=0.5, std=0.25, role="input")
    return make_suite(
        "small",
        [
            TaskGraph(
                "first", "g0", Graph(RELU, (spec, scalar)), NetSource("net", "lib", "1", 3, 5)
            ),
            TaskGraph("first", "g1", graph_of(RELU_AGAIN, dtype="float16")),
            TaskGraph("second", "g2", graph_of(TANH)),
        ],
    )


@pytest.mark.parametrize("name", sorted(shipped_suites()))
def test_a_shipped_suite_loads_and_its_graphs_have_inputs(name: str):
    suite = load_suite(name)
    assert suite.name == name.partition("@")[0] and suite.tasks
    for task in suite.tasks:
        assert {op_sequence(graph.graph.program) for graph in task.graphs} == {task.ops}
    smallest = min(
        (graph.graph for task in suite.tasks for graph in task.graphs),
        key=lambda graph: sum(spec.num_elements for spec in graph.tensors),
    )
    assert len(make_inputs(smallest, "fresh", 0)) == len(smallest.tensors)


def test_the_demo_suite_is_as_broad_as_it_says():
    suite = load_suite("demo")
    graphs = [graph for task in suite.tasks for graph in task.graphs]
    assert len(suite.tasks) >= 12 and len(graphs) >= 40
    assert len({graph.source.net for graph in graphs if graph.source}) >= 8
    assert {"float32", "bfloat16"} <= {
        spec.dtype for graph in graphs for spec in graph.graph.tensors
    }


def test_a_suite_written_is_read_back_equal(suite: Suite, tmp_path: Path):
    path = tmp_path / "small.parquet"
    write_suite(path, suite)
    assert load_suite(str(path)) == suite
    assert list(tmp_path.iterdir()) == [path]


def test_graphs_keep_their_order_and_tasks_that_of_their_first_graph(suite: Suite):
    assert [task.name for task in suite.tasks] == ["first", "second"]
    assert [graph.name for graph in suite.tasks[0].graphs] == ["g0", "g1"]
    assert suite.tasks[0].ops == ("torch.relu", "operator.add")


def test_the_content_hash_sees_names_and_graphs_and_nothing_else(suite: Suite):
    graphs = [graph for task in suite.tasks for graph in task.graphs]
    assert make_suite("other", graphs).content_hash == suite.content_hash
    assert (
        make_suite("small", [replace(graphs[0], source=None), *graphs[1:]]).content_hash
        == suite.content_hash
    )
    changed = [
        graphs[1:],
        [replace(graphs[0], name="g9"), *graphs[1:]],
        [*graphs[:2], replace(graphs[2], task="third")],
        [*graphs[:2], replace(graphs[2], graph=graph_of(TANH, (3, 3)))],
        [graphs[2], *graphs[:2]],
    ]
    hashes = {make_suite("small", edited).content_hash for edited in changed}
    assert len(hashes) == len(changed) and suite.content_hash not in hashes


def test_a_suite_without_graphs_is_refused():
    with pytest.raises(SuiteError, match="suite small holds no graph"):
        make_suite("small", [])


def test_two_graphs_of_one_name_are_refused():
    graphs = [TaskGraph(task, "same", graph_of(TANH)) for task in ("one", "two")]
    with pytest.raises(SuiteError, match="suite small holds two graphs named same"):
        make_suite("small", graphs)


NO_FILES = ("", ".", "..", "../up", "/root", "a/../../up", "a//b", "a/", "a\0b", "a\nb", "a\x1b")


@pytest.mark.parametrize(
    ("task", "name"), [*((name, "g") for name in (*NO_FILES, "a/b")), *(("t", n) for n in NO_FILES)]
)
def test_names_that_lead_out_of_a_folder_are_refused_made_or_read(
    task: str, name: str, tmp_path: Path
):
    graph = TaskGraph(task, name, graph_of(TANH))
    with pytest.raises(SuiteError, match="is no name of a"):
        make_suite("s", [graph])
    SUITES.write(tmp_path / "s.parquet", [row_of_graph(graph)])
    with pytest.raises(SuiteError, match=r"s\.parquet: .* is no name of a"):
        load_suite(str(tmp_path / "s.parquet"))


def test_graphs_in_nested_folders_are_named_by_their_paths(tmp_path: Path):
    for folder in ("a", "b/c", "b/two\nlines"):
        write_sample(tmp_path / folder, GraphSample(graph_of(TANH), {}, "", None, None))
    found = load_suite(str(tmp_path))
    assert [graph.name for graph in found.graphs] == ["a", "b/c"]
    assert found.notes == ("left out: 'b/two\\nlines' is no name of a graph; rename its folder",)


def test_graphs_of_one_task_with_other_ops_are_refused():
    graphs = [
        TaskGraph("task", name, graph_of(program)) for name, program in (("r", RELU), ("t", TANH))
    ]
    with pytest.raises(SuiteError, match="task task: t has another op sequence than r"):
        make_suite("small", graphs)


def test_what_json_cannot_hold_is_refused_when_it_is_stored(tmp_path: Path):
    graph = Graph(
        TANH, (TensorSpec("a", (), "float32", data=(-math.inf,)), graph_of(TANH).tensors[1])
    )
    with pytest.raises(SuiteError, match=r"t/g cannot be stored: .*data\[0\] is -inf"):
        write_suite(tmp_path / "s.parquet", make_suite("s", [TaskGraph("t", "g", graph)]))
    assert list(tmp_path.iterdir()) == []


def edited(column: str, change: Callable[[str], object]) -> Callable[[pa.Table], pa.Table]:
    """An edit of one column of every row of a stored suite."""

    def edit(table: pa.Table) -> pa.Table:
        values = [change(text) for text in table.column(column).to_pylist()]
        index = table.column_names.index(column)
        return table.set_column(index, column, pa.array(values))

    return edit


def with_version(version: bytes | None) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata(
        None if version is None else {VERSION_KEY: version}
    )


MISMATCH = "first/g0: the graph does not have the fingerprints stored with it"
EDITS = {
    "another schema version": (with_version(b"0"), "schema version 0, this passnet reads 1"),
    "no schema version": (with_version(None), "schema version missing"),
    "a missing column": (lambda table: table.drop_columns(["full"]), "not the columns of a suite"),
    "a column of numbers": (edited("program", lambda _: 1), "not the columns of a suite"),
    "a row without a program": (
        edited("program", lambda text: None if "tanh" in text else text),
        "program is missing",
    ),
    "no rows": (lambda table: table.slice(0, 0), "holds no graph"),
    "another op": (edited("program", lambda text: text.replace("relu", "selu")), MISMATCH),
    "another literal": (
        edited("program", lambda text: text.replace("x + b", "x + 1")),
        MISMATCH,
    ),
    "another shape": (edited("tensors", lambda text: text.replace("[2]", "[1,2]")), MISMATCH),
    "another dtype": (edited("tensors", lambda text: text.replace("int64", "int32")), MISMATCH),
    "another fingerprint": (edited("structure", lambda text: text[::-1]), MISMATCH),
    "a program that is no Python": (edited("program", lambda _: "("), "first/g0:1: not Python"),
    "a program that runs code": (
        edited("program", lambda text: text.replace("torch.relu(a)", "eval('1')")),
        "first/g0:.*only torch functions",
    ),
    "tensors that are no JSON": (edited("tensors", lambda _: "{"), "first/g0: not a valid"),
    "tensors without a shape": (
        edited("tensors", lambda text: text.replace("shape", "shapes")),
        "first/g0: not a valid .*shape",
    ),
    "arguments without tensors": (
        edited("tensors", lambda text: text.replace('"name":"a"', '"name":"c"')),
        "first/g0: the arguments of forward and their specs differ",
    ),
    "a source that is none": (edited("source", lambda _: "{}"), "first/g0: not a valid"),
}


@pytest.mark.parametrize("claim", EDITS)
def test_a_stored_suite_is_refused_with(claim: str, suite: Suite, tmp_path: Path):
    edit, message = EDITS[claim]
    path = tmp_path / "small.parquet"
    write_suite(path, suite)
    pq.write_table(edit(pq.read_table(path)), path)
    with pytest.raises(SuiteError, match=f"(small|{path}).*{message}") as caught:
        load_suite(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"no Parquet", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_a_file_that_is_no_parquet_is_refused(data: bytes, tmp_path: Path):
    path = tmp_path / "small.parquet"
    path.write_bytes(data)
    with pytest.raises(SuiteError, match=f"^{path}: not a Parquet file of a suite"):
        load_suite(str(path))


def test_a_file_that_was_cut_off_is_refused(suite: Suite, tmp_path: Path):
    path = tmp_path / "small.parquet"
    write_suite(path, suite)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SuiteError, match="not a Parquet file of a suite"):
        load_suite(str(path))


def test_an_unknown_name_lists_what_ships():
    with pytest.raises(SuiteError, match="no suite 'demonstration'; shipped are demo"):
        load_suite("demonstration")


def test_a_folder_of_graphs_is_a_suite_with_a_task_for_each_op_sequence(tmp_path: Path):
    for name, program in (("b/tanh", TANH), ("a", RELU), ("c", RELU_AGAIN)):
        write_sample(tmp_path / name, GraphSample(graph_of(program)))
    suite = load_suite(str(tmp_path))
    assert suite.name == tmp_path.name
    assert {task.ops: [graph.name for graph in task.graphs] for task in suite.tasks} == {
        ("torch.relu", "operator.add"): ["a", "c"],
        ("torch.tanh",): ["b/tanh"],
    }
    [task] = load_suite(str(tmp_path / "b" / "tanh")).tasks
    assert [graph.name for graph in task.graphs] == ["tanh"]


def test_the_name_of_a_shipped_suite_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = load_suite("demo-small")
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "demo-small", GraphSample(graph_of(TANH)))
    assert load_suite("demo-small") == shipped
    [task] = load_suite("./demo-small").tasks
    assert task.ops == ("torch.tanh",)


def test_a_folder_without_graphs_is_refused(tmp_path: Path):
    with pytest.raises(GraphError, match="holds no graph"):
        load_suite(str(tmp_path))
