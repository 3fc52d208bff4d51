"""A graph in another dtype has the same ops, and arguments that its ops take."""

from dataclasses import replace

import pytest
import torch

from passnet.data.capture.capture import capture
from passnet.data.capture.recapture import recapture
from passnet.data.mine.dtypes import CUDA_FLOAT32_NORMS, in_dtype
from passnet.data.mine.literals import adopt_literals
from passnet.errors import GraphError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph, TensorSpec, main_float
from passnet.graph.values.fake import infer_shapes
from tests.data.capture import sized
from tests.data.capture.nets import mixed
from tests.graph.programs import graph_of, program_of


def dtypes(graph: Graph) -> dict[str, str]:
    return {spec.name: spec.dtype for spec in graph.tensors}


def value_dtypes(graph: Graph) -> list[str | None]:
    return [shape.dtype for values in infer_shapes(graph) for shape in values]


def test_norm_parameters_stay_float32_and_weights_change():
    [graph] = capture(*mixed())
    half = in_dtype(graph, "bfloat16")
    kinds = dtypes(half)
    assert {kind for name, kind in kinds.items() if "norm" in name} == {"float32"}
    assert {kind for name, kind in kinds.items() if "norm" not in name} == {"bfloat16"}
    assert op_sequence(half.program) == op_sequence(graph.program)
    assert set(value_dtypes(half)) <= {"bfloat16", None}


def test_norms_that_are_not_kept_have_parameters_of_their_inputs_dtype():
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4)).eval()
    [graph] = capture(net, torch.ones(2, 4))
    kinds = dtypes(in_dtype(graph, "float16", CUDA_FLOAT32_NORMS))
    assert sorted(kinds.values()) == ["float16"] * 3 + ["float32"] * 4


@pytest.mark.parametrize(
    "product",
    [
        "y = torch._C._nn.linear(x, b)",
        "w = b.t(); y = x @ w",
        "y = torch.einsum('ij,kj->ik', x, b)",
    ],
)
def test_an_argument_takes_the_dtype_of_the_value_that_it_meets(product):
    product = product.replace("torch.einsum", "torch.functional.einsum")
    lines = ["x = a.float()", *product.split("; ")]
    graph = graph_of(program_of(*lines, returns="(y,)"), (3, 3))
    assert dtypes(in_dtype(graph, "float16")) == {"a": "float16", "b": "float32"}
    graph = graph_of(program_of("x = a + 1", *lines[1:], returns="(y,)"), (3, 3))
    assert dtypes(in_dtype(graph, "float16")) == {"a": "float16", "b": "float16"}


def test_literals_that_follow_the_dtype_are_those_of_the_net():
    entry = f"{sized.__file__}:rms"
    [base] = recapture(entry, {}).graphs
    [large] = recapture(entry, {"batch": 4, "time": 9}).graphs
    for dtype in ("float16", "bfloat16"):
        [in_other] = recapture(entry, {}, dtype).graphs
        [expected] = recapture(entry, {"batch": 4, "time": 9}, dtype).graphs
        half = in_dtype(adopt_literals(large, base, in_other), dtype)
        assert fingerprints(half).full == fingerprints(expected).full
        alone = in_dtype(large, dtype)
        assert value_dtypes(alone).count("float32") > value_dtypes(half).count("float32")


def test_graphs_of_other_ops_tell_nothing_about_literals():
    first = graph_of(program_of("y = a + 1", returns="(y,)"))
    second = graph_of(program_of("y = a * 1", returns="(y,)"))
    with pytest.raises(GraphError, match="other ops"):
        adopt_literals(first, first, second)


def test_a_literal_that_depends_on_size_and_dtype_is_refused():
    resized, base, in_other = (
        graph_of(program_of(f"y = a.view({size}, 2)", returns="(y,)")) for size in (6, 3, 4)
    )
    with pytest.raises(GraphError, match="depends on sizes and on the dtype"):
        adopt_literals(resized, base, in_other)


def test_a_literal_beyond_the_dtype_becomes_its_largest_number():
    line = "y = a.masked_fill(b, -3.4028234663852886e+38)"
    program = program_of(line, returns="(y,)")
    specs = (TensorSpec("a", (2, 3), "float32"), TensorSpec("b", (2, 3), "bool"))
    for dtype, lowest in (("float16", -65504.0), ("bfloat16", -3.3895313892515355e38)):
        assert in_dtype(Graph(program, specs), dtype).program.ops[0].args[2] == lowest
    wide = program_of("x = a.double()", line.replace("a.", "x."), returns="(y,)")
    assert in_dtype(Graph(wide, specs), "float16").program.ops[1].args[2] == -3.4028234663852886e38


NUMBERS = {
    "y = a.masked_fill(b, -1000000)": -65504,
    "y = torch.clamp(a, max=100000)": 65504,
    "y = 100000 * a": 65504,
    "y = torch.full_like(a, 100000)": 65504,
    "y = torch.where(b, a, -1000000)": -65504,
}


@pytest.mark.parametrize("line", NUMBERS)
def test_an_integer_to_compute_with_is_clamped_too(line):
    specs = (TensorSpec("a", (2, 3), "float32"), TensorSpec("b", (2, 3), "bool"))
    [op] = in_dtype(Graph(program_of(line, returns="(y,)"), specs), "float16").program.ops
    numbers = [arg for arg in (*op.args, *dict(op.kwargs).values()) if type(arg) is int]
    assert numbers == [NUMBERS[line]]


@pytest.mark.parametrize("line", ["y = a.expand(100000, 3)", "y = a[slice(0, 100000)]"])
def test_a_size_and_an_index_are_not_clamped(line):
    graph = graph_of(program_of(line, params="a", returns="(y,)"), (1, 3))
    assert in_dtype(graph, "float16").program == graph.program


def test_in_a_half_graph_literals_of_its_dtype_follow_and_float32_stays():
    program = program_of(
        "x = a.to(torch.float32)", "y = x.to(torch.bfloat16)", "z = y @ b", returns="(z,)"
    )
    graph = graph_of(program, (3, 3), "bfloat16")
    assert value_dtypes(in_dtype(graph, "float16")) == ["float32", "float16", "float16"]
    assert value_dtypes(in_dtype(graph, "float32")) == ["float32"] * 3


def test_arguments_of_another_dtype_than_most_stay():
    graph = graph_of(program_of("y = a + b", returns="(y,)"))
    spec = graph.tensors[0]
    wide = Graph(graph.program, (replace(spec, dtype="float64", shape=()), graph.tensors[1]))
    assert dtypes(in_dtype(wide, "float16")) == {"a": "float64", "b": "float16"}
    assert main_float(wide.tensors) == "float32"


def test_what_cannot_be_in_a_dtype_is_refused_with_the_op():
    graph = graph_of(program_of("x = a.float()", "y = b + 1", "z = x @ y", returns="(z,)"), (3, 3))
    with pytest.raises(GraphError, match="operator.matmul"):
        in_dtype(graph, "float16")
    with pytest.raises(GraphError, match="no argument has a floating-point dtype"):
        in_dtype(graph_of(program_of("y = a + b", returns="(y,)"), dtype="int64"), "float16")
