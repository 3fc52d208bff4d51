"""Whole numbers and truth values: fresh ones vary wherever the ops of a graph take any value."""

import numpy as np
import pytest
import torch

from passnet.core.records.dtypes import is_float
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.values.inputs import InputKind, integer_pools, make_inputs, varies
from passnet.graph.values.uses import find_uses
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import TaskGraph
from tests.graph.programs import program_of
from tests.graph.test_corpus import run_eagerly

ONES = {"shape": (6, 50), "dtype": "int64", "data": (1,) * 300}
"""What is recorded of the mask of a text without padding."""


def graph_with(*lines: str, **fields: object) -> Graph:
    """A graph of tables `t` of 5 and `u` of 4 rows and the whole numbers `x`."""
    tables = (TensorSpec("t", (5, 7), "float32"), TensorSpec("u", (4, 7), "float32"))
    spec = TensorSpec("x", **(ONES | fields))  # type: ignore[arg-type]
    return Graph(program_of(*lines, params="t, u, x", returns="(y,)"), (*tables, spec))


def fresh(graph: Graph, seed: int = 0, kind: InputKind = "fresh") -> np.ndarray:
    values = make_inputs(graph, kind, seed)[2]
    assert isinstance(values, np.ndarray)
    return values


ANY_VALUE = {
    "compared": (("y = x == 0",), {0, 1}),
    "a mask that is added": (("z = x.to(torch.float32)", "a = 1.0 - z", "y = a * -3e38"), {0, 1}),
    "a mask that fills": (("z = x == 0", "y = t.masked_fill(z, 0.0)"), {0, 1}),
    "positions that are counted": (("y = torch.cumsum(x, 1)",), {0, 1}),
    "an index": (("y = torch.nn.functional.embedding(x, t)",), set(range(5))),
    "an index into an alias": (("v = t", "w = x", "y = v[w]"), set(range(5))),
    "an index behind a new dimension": (("y = t[(None, x)]",), set(range(5))),
    "an index with an offset": (("z = x + 2", "y = torch.embedding(t, z)"), set(range(3))),
    "an index into two tables": (("a = t[x]", "y = u[x]"), set(range(4))),
    "an index that is compared too": (("a = t[x]", "b = x != 1", "y = a * b"), set(range(5))),
    "a dividend": (("y = x / 3",), {0, 1}),
}


@pytest.mark.parametrize("claim", ANY_VALUE)
@pytest.mark.parametrize("recorded", [{}, {"data": None, "min_val": 1, "max_val": 1}])
def test_one_recorded_number_varies_where_the_ops_take_any(claim: str, recorded: dict):
    lines, values = ANY_VALUE[claim]
    graph = graph_with(*lines, **recorded)
    assert set(np.unique(fresh(graph)).tolist()) == values
    assert not np.array_equal(fresh(graph, 0), fresh(graph, 1))
    assert np.unique(fresh(graph, kind="recorded")).tolist() == [1]
    assert varies(graph)


@pytest.mark.parametrize(("number", "low", "high"), [(521, 260, 521), (-100, -100, -50), (0, 0, 1)])
def test_a_recorded_number_varies_towards_zero(number: int, low: int, high: int):
    values = fresh(graph_with("y = x * 2", shape=(5000,), data=(number,) * 5000))
    assert (values.min(), values.max()) == (low, high)


PINNED = {
    "a number of repeats": "y = torch.repeat_interleave(t, x)",
    "an index into what is computed": "v = t + 1; y = v[x]",
    "an index that is computed": "z = x * 2; y = t[z]",
    "an index before the first": "z = x + -1; y = t[z]",
    "an index behind dots": "y = t[(..., x)]",
    "a part of a slice": "y = t[slice(None, x, None)]",
    "a divisor": "y = t / x",
    "a mask that picks": "z = x == 1; y = t[z]",
    "where something is": "y = torch.where(x)",
    "what is written elsewhere": "z = torch.zeros(3); z.add_(x); y = torch.bincount(z)",
    "an op that is not known": "y = torch.special.zeta(x, 2)",
}


@pytest.mark.parametrize("claim", PINNED)
def test_numbers_of_which_it_is_not_known_that_they_may_change_keep_to_their_values(claim: str):
    lines = PINNED[claim].split("; ")
    graph = graph_with(*lines)
    assert find_uses(graph)["x"].is_pinned
    for pinned in (graph, graph_with(*lines, data=None, min_val=1, max_val=1)):
        assert np.unique(fresh(pinned)).tolist() == [1]
    several = graph_with(*lines, data=(0, 1, 2, 2, 2, 3) * 50)
    first, second = fresh(several, 0), fresh(several, 1)
    assert not np.array_equal(first, second)
    assert np.array_equal(np.sort(first, axis=None), np.sort(second, axis=None))


def test_a_mask_that_picks_keeps_its_number_of_true_values():
    graph = graph_with("y = t[x]", shape=(5,), dtype="bool", data=(True, True, False, True, False))
    draws = [fresh(graph, seed) for seed in range(10)]
    assert {int(mask.sum()) for mask in draws} == {3} and len(
        {mask.tobytes() for mask in draws}
    ) > 2


@pytest.mark.parametrize(("share", "expected"), [(1.0, 0.9), (0.0, 0.1), (0.3, 0.3)])
def test_a_mask_is_true_as_often_as_recorded_but_never_everywhere(share: float, expected: float):
    data = tuple(number < 300 * share for number in range(300))
    masks = [fresh(graph_with("y = t * x", dtype="bool", data=data), seed) for seed in range(40)]
    assert abs(np.mean(masks) - expected) < 0.02
    assert fresh(graph_with("y = t * x", dtype="bool", data=data), kind="recorded").mean() == share


@pytest.mark.parametrize("width", [3, 4, 8, 9])
def test_every_row_of_a_mask_has_both_values_wherever_it_is_taken(width: int):
    fields = {"shape": (500, width), "data": None, "min_val": 1, "max_val": 1}
    for dtype in ("bool", "int64"):
        graph = graph_with("y = x != 0", **(fields | {"dtype": dtype}))
        rows = fresh(graph).astype(bool)
        assert (rows.any(axis=1) & ~rows.all(axis=1)).all()
        pool = integer_pools(graph, np.random.default_rng(0), 100)[2]
        assert pool is not None and pool.shape == (500 * width + 100,)
        for start in range(100):
            rows = pool[start : start + 500 * width].reshape(500, width).astype(bool)
            assert (rows.any(axis=1) & ~rows.all(axis=1)).all()


def test_pools_are_of_whole_numbers_that_may_vary():
    graph = graph_with("y = torch.nn.functional.embedding(x, t)", shape=(1,), data=(3,))
    tables, pool = (pools := integer_pools(graph, np.random.default_rng(0), 999))[:2], pools[2]
    assert tables == [None, None] and pool is not None and pool.dtype == np.int64
    assert pool.shape == (1000,) and np.unique(pool).tolist() == list(range(5))
    pinned = graph_with("y = torch.repeat_interleave(t, x)")
    scalar = graph_with("y = t * x", shape=(), data=(3,))
    for kept in (pinned, scalar):
        assert integer_pools(kept, np.random.default_rng(0), 999) == [None, None, None]


NOTHING_VARIES = {
    "a form is read": "y = t.size(0)",
    "another form is read": "y = torch.zeros_like(t)",
    "an attribute is read": "y = t.shape",
    "a pinned number": "y = torch.repeat_interleave(x, x)",
    "nothing is read": "y = torch.arange(5)",
    "what varies is overwritten": "y = t + 1; y = torch.arange(5)",
    "what varies is overwritten by a form": "y = t + 1; y = y.size(0)",
}


@pytest.mark.parametrize("claim", NOTHING_VARIES)
def test_a_graph_whose_outputs_owe_nothing_to_what_varies_says_so(claim: str):
    assert not varies(graph_with(*NOTHING_VARIES[claim].split("; ")))


def test_truth_values_that_pick_and_are_all_true_do_not_vary():
    assert not varies(graph_with("y = torch.where(x)", dtype="bool", data=(True,) * 300))


@pytest.mark.parametrize(
    "lines", ["y = t.T", "z = t; y = z + 1", "y = torch.arange(5); y.add_(t)", "y = x == x"]
)
def test_a_graph_on_which_something_varies_says_so(lines: str):
    assert varies(graph_with(*lines.split("; ")))


def test_a_graph_of_symbolic_sizes_and_scalars_does_not_vary():
    lines = ("y = torch.full((n,), 1.0)", "z = y * s")
    program = program_of(*lines, params="n: torch.SymInt, s", returns="(z,)")
    specs = (TensorSpec("n", (), "int64", data=(4,)), TensorSpec("s", (), "float32", mean=2.0))
    assert not varies(Graph(program, specs))


def outputs(graph: Graph, kind: InputKind, seed: int) -> list[torch.Tensor]:
    given = run_eagerly(graph, kind, seed)
    return [output for output in given if isinstance(output, torch.Tensor)]


NOT_ALL_FINITE = {
    "zeros-cat-zeros_like-b03bad0b": 0.4,  # a mask of zero and minus infinity
    "matmul-acos-truediv-9327afef": 0.3,  # products beyond one have no arc cosine
}
"""Tasks of which outputs hold what is not finite, with the share that is at least."""


def check_runs(graph: TaskGraph) -> None:
    """It runs on fresh and extreme inputs, is finite on fresh ones, and varies."""
    first, second = (outputs(graph.graph, "fresh", seed) for seed in (1, 2))
    least = NOT_ALL_FINITE.get(graph.task, 1.0)
    for output in (*first, *second):
        assert output.isfinite().double().mean() >= least, graph.name
    assert varies(graph.graph), graph.name
    assert not all(map(torch.equal, first, second)), graph.name
    outputs(graph.graph, "extreme", 3)


def whole_number_graphs(name: str) -> list[TaskGraph]:
    """The graphs of a shipped suite with whole numbers or truth values among their arguments."""
    return [
        graph
        for graph in load_suite(name).graphs
        if any(not is_float(spec.dtype) for spec in graph.graph.tensors)
    ]


def test_a_few_graphs_of_shipped_suites_run_on_fresh_whole_numbers():
    graphs = [graph for name in ("demo", "demo-held-out") for graph in whole_number_graphs(name)]
    assert len(graphs) == 8
    for graph in graphs:
        check_runs(graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("passbench-v0", 135),
        ("passbench-v0-classical", 107),
        ("passbench-v0-single", 111),
        ("passbench-v1", 213),
        ("passbench-v1-held-out", 2),
        ("passbench-v1-classical", 59),
        ("passbench-v1-classical-held-out", 6),
        ("passbench-v1-single", 97),
        ("passbench-v1-single-held-out", 50),
    ],
)
def test_all_graphs_of_shipped_suites_run_on_fresh_whole_numbers(name: str, count: int):
    graphs = whole_number_graphs(name)
    assert len(graphs) == count
    for graph in graphs:
        check_runs(graph)
