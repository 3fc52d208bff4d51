"""Subgraphs of the training suite at other sizes and in other dtypes."""

import pytest

from passnet.errors import GraphError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.judge.suite.suite import load_suite
from recipes.passbench_v1 import other_dtypes
from recipes.train_v1 import other_sizes, with_size

NORM = """import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, weight):
        y = torch.nn.functional.layer_norm(x, (64,), weight, None, 1e-05)
        z = y.view(2, 8, 4, 16)
        return (z,)
"""


def graph(text: str = NORM, **of_weight: object) -> Graph:
    program = parse_program(text)
    weight = TensorSpec("weight", (64,), "float32", **of_weight)
    return Graph(program, (TensorSpec("x", (2, 8, 64), "float32"), weight))


def test_a_size_changes_wherever_it_stands():
    other = with_size(graph(), 2, 4)
    assert [spec.shape for spec in other.tensors] == [(4, 8, 64), (64,)]
    assert "view(4, 8, 4, 16)" in render_program(other.program)
    assert list(other_sizes(graph())) == ["2=4"]  # 64 is a product of sizes in the view


def test_a_size_of_fixed_values_or_of_a_product_stays():
    with pytest.raises(GraphError):
        with_size(graph(), 64, 128)
    plain = NORM.replace("        z = y.view(2, 8, 4, 16)\n", "").replace("(z,)", "(y,)")
    assert with_size(graph(plain), 64, 128).tensors[1].shape == (128,)
    with pytest.raises(GraphError, match="weight has fixed values"):
        with_size(graph(plain, data=(1.0,) * 64), 64, 128)


CONSTANTS = {
    "y = x.pow(2)": "x.pow(2)",
    "y = x * 2": "x * 2",
    "y = torch.softmax(x, 2)": "torch.softmax(x, 2)",
    "y = x.permute(2, 0, 1)": "x.permute(2, 0, 1)",
    "y = x[slice(None, None, 2)]": "slice(None, None, 2)",
}
SIZES = {
    "y = x.reshape(2, -1)": "x.reshape(4, -1)",
    "y = x.new_zeros((2, 8))": "x.new_zeros((4, 8))",
    "y = torch.full((2, 8), 2)": "torch.full((4, 8), 2)",
    "y = x[slice(0, 2)]": "slice(0, 4",
    "y = x.narrow(0, 0, 2)": "x.narrow(0, 0, 4)",
    "y = x.expand(2, 8, 64)": "x.expand(4, 8, 64)",
}


@pytest.mark.parametrize("line", CONSTANTS | SIZES)
def test_numbers_that_are_no_sizes_stay(line):
    text = (
        "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, weight):\n"
        f"        {line}\n        return (y,)\n"
    )
    assert (CONSTANTS | SIZES)[line] in render_program(with_size(graph(text), 2, 4).program)


def test_dtypes_are_those_that_the_ops_take():
    made = dict(other_dtypes(graph()))
    assert sorted(made) == ["bfloat16", "float16"]
    assert {made[dtype].tensors[0].dtype for dtype in made} == {"bfloat16", "float16"}


def test_the_suite_has_other_sizes_and_dtypes_of_one_structure():
    suite = load_suite("train-v1")
    assert len(suite.tasks) == 1020 and len(suite.graphs) > 3500
    shapes = {
        task.name: {tuple(spec.shape for spec in graph.graph.tensors) for graph in task.graphs}
        for task in suite.tasks
    }
    assert sum(len(own) > 1 for own in shapes.values()) > 500
    nets = {graph.source.library for graph in suite.graphs if graph.source}
    assert len(nets) >= 20
