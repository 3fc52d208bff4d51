"""Large products of weights are given to oneDNN: which they are, and that they stay right."""

from pathlib import Path

import pytest
import torch

from passnet.data.capture.capture import capture_values
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.desk.desk import JudgeDesk
from passnet.optimizer.choose.judging import judging_settings, let_author_write
from passnet.optimizer.choose.ranges import net_ranges
from passnet.passes.backend import compile_graph
from passnet.passes.codegen.products import LEAST_PRODUCTS, is_product, product_folder
from passnet.passes.files import write_files
from passnet.passes.library.store import range_key
from passnet.passes.load import loaded_passes
from tests.graph.programs import program_of

SHAPES = {"a": (1, 64, 96), "b": (192, 96), "c": (192,)}
LINEAR = "y = torch._C._nn.linear(a, b, c)"


def graph_with(line: str, shapes: dict[str, tuple[int, ...]], dtype: str = "float32") -> Graph:
    program = program_of(line, params=", ".join(shapes), returns="(y,)")
    return Graph(program, tuple(TensorSpec(name, shape, dtype) for name, shape in shapes.items()))


def found(graph: Graph) -> bool:
    return is_product(graph.program.ops[0], {spec.name: spec for spec in graph.tensors})


@pytest.mark.parametrize(
    ("line", "shapes"),
    [
        (LINEAR, SHAPES),
        ("y = torch.nn.functional.linear(a, b, None)", {"a": (64, 96), "b": (192, 96)}),
        ("y = torch.nn.functional.linear(a, b, bias=c)", SHAPES),
        ("y = torch.matmul(a, b)", {"a": (2, 32, 96), "b": (96, 192)}),
        ("y = a @ b", {"a": (64, 96), "b": (96, 192)}),
    ],
)
def test_a_product_by_onednn_is_right_also_for_nan_and_infinity(
    line: str, shapes: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    graph = graph_with(line, shapes)
    assert found(graph)
    write_files(product_folder([graph]), tmp_path)
    inputs = [torch.randn(shape) / 4 for shape in shapes.values()]
    passes = loaded_passes(tmp_path)
    function, [report] = compile_graph(build(graph.program), inputs, passes)
    assert report.num_matches == 1
    for value in (1.0, float("nan"), float("inf"), -float("inf"), 1e-40):
        inputs[0].view(-1)[5] = value
        expected = build(graph.program)(*inputs)
        torch.testing.assert_close(function(*inputs), expected, equal_nan=True)
        inputs[1].mul_(0.5)  # weights are read at each call


def test_a_pass_for_a_product_is_for_the_forms_in_which_it_was_judged(tmp_path: Path) -> None:
    graph = graph_with(LINEAR, SHAPES)
    write_files(product_folder([graph]), tmp_path)
    weight, bias = torch.randn(192, 96), torch.randn(192)
    for value in (torch.randn(1, 65, 96), torch.randn(1, 96, 64).transpose(1, 2)):
        _, [report] = compile_graph(
            build(graph.program), [value, weight, bias], loaded_passes(tmp_path)
        )
        assert report.num_matches == 0


@pytest.mark.parametrize(
    "graph",
    [
        graph_with(LINEAR, SHAPES, "bfloat16"),
        graph_with(LINEAR, {"a": (4, 96), "b": (192, 96), "c": (192,)}),
        graph_with("y = torch.matmul(a, b)", {"a": (8, 64, 64), "b": (8, 64, 64)}),
        graph_with("y = torch.relu(a)", {"a": (1024, 1024)}),
    ],
    ids=["bfloat16", "small", "batched", "no product"],
)
def test_what_is_no_large_product_of_weights_is_left_alone(graph: Graph) -> None:
    assert not found(graph) and not product_folder([graph])


def test_a_folder_is_for_graphs_of_one_product() -> None:
    graphs = [graph_with(LINEAR, {**SHAPES, "a": (rows, 96)}) for rows in (64, 65)]
    text = product_folder(graphs)["Product0.py"]
    assert all(f"    (({rows}, 96), torch.float32, (192, 96)" in text for rows in (64, 65))
    other = graph_with("y = torch.matmul(a, b)", {"a": (64, 96), "b": (96, 192)})
    assert not product_folder([graphs[0], other])


def test_large_products_of_a_net_are_ranges() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(96, 192), torch.nn.Tanh(), torch.nn.Linear(192, 2))
    assert 64 * 96 * 192 >= LEAST_PRODUCTS > 64 * 192 * 2
    with torch.no_grad():
        ranges, _ = net_ranges(capture_values(net, torch.randn(64, 96)))
    assert sorted(each.key.ops for each in ranges) == [("torch._C._nn.linear",), ("torch.tanh",)]


@pytest.mark.slow
@pytest.mark.parametrize("author", ["compiler", "search"])
def test_programs_write_a_product_that_the_judge_finds_right(author: str) -> None:
    with JudgeDesk(judging_settings(), "direct") as evaluator:
        judged = let_author_write(evaluator, range_key(graph_with(LINEAR, SHAPES), 0), author)
    assert judged.trial is not None and judged.trial.status in ("ok", "unstable")
    assert "_linear_pointwise" in judged.files["Product0.py"] and not judged.trial.findings
