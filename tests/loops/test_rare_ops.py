"""Training data of rare ops: windows around them, and other ops exchanged for them."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.fake import infer_shapes
from passnet.judge.suite.suite import load_suite, read_suite_keys
from passnet_loops.data.build import EXCHANGED, DataInfo, Excluded, data_run, mine_rows
from passnet_loops.data.judge_rows import judged_row
from passnet_loops.data.mining import windows
from passnet_loops.data.rare_ops import RareOps
from passnet_loops.data.row_judge import open_judge
from passnet_loops.settings import DataSettings
from tests.loops.test_training_rows import captured

LINES = (
    "a = torch.nn.functional.relu(x, inplace=False)",
    "b = a + y",
    "d = b.mean(-1, keepdim=True)",
    "e = torch.nn.functional.max_pool2d(b, 2, 2, 0, 1, ceil_mode=False, return_indices=False)",
    "return (d, e)",
)
ROLLED = (*LINES[:-1], "c = torch.roll(b, 1, -1)", "return (c, d, e)")
OFTEN = (
    "torch.nn.functional.relu", "operator.add", "Tensor.mean", "torch.nn.functional.max_pool2d",
)  # fmt: skip


def graph_of_lines(*lines: str) -> Graph:
    body = "".join(f"        {line}\n" for line in lines)
    head = "class GraphModule(torch.nn.Module):\n    def forward(self, x, y):\n"
    specs = tuple(TensorSpec(name, (2, 3, 8, 8), "float32") for name in "xy")
    return Graph(parse_program(f"import torch\n{head}{body}"), specs)


def rare_below(limit: int, **counts: int) -> RareOps:
    rare = RareOps(limit, Counter(counts))
    for _ in range(limit):
        rare.add(OFTEN)
    return rare


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("erf", "a = torch.erf(x)"),
        ("maximum", "b = torch.maximum(a, y)"),
        ("logsumexp", "d = torch.logsumexp(b, dim=-1, keepdim=True)"),
        ("avg_pool2d", "e = torch._C._nn.avg_pool2d(b, 2, 2, 0)"),
    ],
)
def test_an_op_gives_its_place_to_a_rare_one_of_its_kind(name: str, line: str) -> None:
    graph = graph_of_lines(*LINES)
    rare = rare_below(9, **{name: 1})
    seen = Counter[str]()
    for seed in range(40):
        other = rare.exchanged(graph, Random(seed))
        if other is not None:
            infer_shapes(other)
            changed = [
                op.target
                for op, before in zip(other.program.ops, graph.program.ops, strict=True)
                if op != before
            ]
            assert changed and all(target.endswith(name) for target in changed)
            seen.update(each for each in render_program(other.program).splitlines() if name in each)
    assert any(line in each for each in seen)


def test_a_graph_without_a_rare_op_is_left_out_and_one_with_it_may_stay() -> None:
    graph = graph_of_lines(*ROLLED)
    often = rare_below(9, roll=9)
    assert all(often.exchanged(graph, Random(seed)) is None for seed in range(9))
    found = [rare_below(9, roll=1).exchanged(graph, Random(seed)) for seed in range(30)]
    assert graph in found, "it is rare itself"
    assert all(any("roll" in op.target for op in each.program.ops) for each in found if each)


def test_windows_lie_around_a_rare_op() -> None:
    lines = [f"v{n + 1} = torch.nn.functional.relu(v{n})" for n in range(60)]
    lines[30] = "v31 = torch.roll(v30, 1, -1)"
    graph = graph_of_lines("v0 = x + y", *lines, "return (v60,)")
    found = list(windows(graph, "seed", 40, rare_below(9)))
    assert len(found) >= 4
    assert all(any("roll" in op.target for op in each.graph.program.ops) for each in found)


@pytest.mark.slow
def test_rows_of_exchanged_ops_are_named_so_and_their_answers_are_right(tmp_path: Path) -> None:
    suite = load_suite("demo")
    graphs = [captured(task.graphs[0]) for task in suite.tasks]
    keys = read_suite_keys(["demo-small"])
    info = DataInfo(SCHEMA_VERSION, "captures", keys.hashes, DataSettings(max_windows=4, rare=3))
    rare = rare_below(3, erf=1, maximum=1, hardswish=1, amax=1)
    mine_rows(graphs, tmp_path, info, Excluded(keys, set(), rare))
    rows = [row for batch in data_run(tmp_path).records().values() for row in batch.rows]
    exchanged = [row for row in rows if row.net.endswith(EXCHANGED)]
    assert len(exchanged) > 5
    assert all(any(map(rare_below(3).is_rare, row.op_sequence)) for row in rows)
    with open_judge() as judge:
        verdicts = Counter(judged_row(judge, row).verdict for row in exchanged[:10])
    assert verdicts["correct"] >= 7
