"""Capture of nets: what becomes an argument, what is recorded, and that the graph is the net."""

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from passnet.core.records.dtypes import from_storage
from passnet.data.capture.capture import CapturedGraph, capture, capture_values
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.errors import CaptureError
from passnet.graph.fx.build import build
from passnet.graph.fx.from_fx import spec_from_tensor
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.fake import infer_shapes
from passnet.graph.values.inputs import make_inputs
from tests.data.capture.nets import mixed


def targets(graph: Graph) -> list[str]:
    return [op.target for op in graph.program.ops]


def rerun(captured: CapturedGraph) -> tuple[Any, ...]:
    """What the graph gives on its captured values, after it went through its text."""
    program = parse_program(render_program(captured.graph.program))
    assert program == captured.graph.program
    assert [spec.name for spec in captured.graph.tensors] == [
        param.name for param in program.params
    ]
    with torch.no_grad():
        return build(program)(*captured.values)


def assert_same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_parameters_and_inputs_become_arguments():
    net, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
    [captured] = capture_values(net, x)
    assert targets(captured.graph) == ["torch._C._nn.linear"]
    assert {spec.shape for spec in captured.graph.tensors} == {(3, 4), (2, 4), (2,)}
    assert_same(rerun(captured), (net(x),))


def test_a_net_with_norm_in_place_operator_and_index_assignment_is_captured_whole():
    net, x = mixed()
    with torch.no_grad():
        expected = net(x)
    [captured] = capture_values(net, x)
    called = targets(captured.graph)
    assert {"operator.setitem", "Tensor.mul_", "torch.nn.functional.batch_norm"} <= set(called)
    assert "operator.iadd" in called
    assert_same(rerun(captured), expected)


@pytest.mark.parametrize(
    ("net", "target"),
    [
        (torch.nn.LSTM(4, 5), "torch.lstm"),
        (torch.nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), "torch.lstm"),
        (torch.nn.GRU(4, 5), "torch.gru"),
        (torch.nn.GRU(4, 5, 2, bidirectional=True, bias=False), "torch.gru"),
        (torch.nn.RNN(4, 5), "torch.rnn_tanh"),
        (torch.nn.RNN(4, 5, nonlinearity="relu"), "torch.rnn_relu"),
        (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GRU(4, 5)), "torch.gru"),
    ],
)
def test_a_recurrent_net_is_one_graph_that_computes_what_it_does(net, target):
    x = torch.randn(3, 2, 4)
    [captured] = capture_values(net, x)
    assert target in targets(captured.graph)
    expected = net(x)
    output, *state = rerun(captured)
    assert_same(output, expected[0])
    assert_same(tuple(state), expected[1] if isinstance(expected[1], tuple) else expected[1:])
    shapes = infer_shapes(captured.graph)
    assert shapes[targets(captured.graph).index(target)][0].shape == tuple(output.shape)
    assert not torch._dynamo.config.allow_rnn


def test_tuples_lists_and_keywords_are_inputs():
    def net(pair, *, scale, more):
        return pair[0] * pair[1] + scale, more["bias"] - 1

    values = [torch.full((2,), float(index)) for index in range(4)]
    [captured] = capture_values(
        net, (values[0], values[1]), scale=values[2], more={"bias": values[3]}
    )
    assert len(captured.graph.tensors) == 4
    assert_same(rerun(captured), (torch.full((2,), 2.0), torch.full((2,), 2.0)))


def test_a_graph_break_gives_several_graphs_in_the_order_they_ran():
    def net(x):
        y = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.tanh(y)

    assert [targets(graph) for graph in capture(net, torch.ones(2))] == [
        ["torch.relu"],
        ["torch.tanh"],
    ]


@torch._dynamo.assume_constant_result
def first_constant() -> torch.Tensor:
    return torch.tensor([1.0, 2.0])


@torch._dynamo.assume_constant_result
def second_constant() -> torch.Tensor:
    return torch.tensor([[10.0], [20.0]])


def test_constant_tensors_become_arguments():
    def net(x):
        return first_constant() * x + second_constant() + first_constant()

    [captured] = capture_values(net, torch.ones(2))
    shapes = [spec.shape for spec in captured.graph.tensors]
    assert shapes[0] == (2,) and (2, 1) in shapes and len(shapes) > 2
    assert_same(rerun(captured), (torch.tensor([[12.0, 14.0], [22.0, 24.0]]),))


def test_an_array_of_numpy_becomes_an_argument():
    array = np.arange(3.0, dtype=np.float32)
    [captured] = capture_values(lambda x: x + torch.from_numpy(array), torch.ones(3))
    assert_same(rerun(captured), (torch.tensor([1.0, 2.0, 3.0]),))


def test_a_net_that_fails_is_a_capture_error_with_its_cause():
    with pytest.raises(CaptureError, match="(?s)capturing Linear: .*reduction dim") as caught:
        capture(torch.nn.Linear(4, 2), torch.ones(1, 3))
    assert caught.value.__cause__ is not None


def test_a_net_without_tensor_ops_is_a_capture_error():
    with pytest.raises(CaptureError, match="capturing function: Dynamo found no tensor op"):
        capture(lambda x: x, 3)


def test_a_net_that_raises_an_error_of_its_own_is_a_capture_error():
    def net(x):
        raise KeyError("own error")

    with pytest.raises(CaptureError, match="capturing function: .*own error"):
        capture(net, torch.ones(1))


def test_capture_leaves_the_net_and_the_grad_mode_alone():
    net, x = mixed()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    capture(net, x)
    assert torch.is_grad_enabled() and not net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_net_is_captured_without_gradients():
    def net(x):
        return torch.relu(x) if torch.is_grad_enabled() else torch.tanh(x)

    [graph] = capture(net, torch.ones(2))
    assert targets(graph) == ["torch.tanh"]


def test_floats_are_described_by_their_mean_and_spread():
    spec = spec_from_tensor("x", torch.tensor([[1.0, 3.0]], dtype=torch.bfloat16))
    assert spec == TensorSpec("x", (1, 2), "bfloat16", "cpu", 2.0, 1.0)


def test_integers_are_described_by_their_range_and_few_by_their_values():
    few = spec_from_tensor("x", torch.tensor([3, -1]))
    assert (few.min_val, few.max_val, few.data, few.mean) == (-1, 3, (3, -1), None)
    many = spec_from_tensor("x", torch.arange(100))
    assert (many.min_val, many.max_val, many.data) == (0, 99, None)
    assert {"min_val", "max_val"} <= set(many.keys)
    assert spec_from_tensor("x", torch.tensor([True, False])).data == (True, False)


def test_a_scalar_keeps_its_value_and_what_is_no_number_is_not_measured():
    assert spec_from_tensor("x", torch.tensor(0.5)).data == (0.5,)
    spec = spec_from_tensor("x", torch.tensor([math.nan, 1.0]))
    assert (spec.mean, spec.std, spec.data) == (None, None, None)
    assert spec_from_tensor("x", torch.empty(0, 3)).mean is None
    assert spec_from_tensor("x", torch.tensor(math.nan)).data is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_mask_of_infinities_is_replayed_as_a_mask(dtype):
    def masked(x, mask, least):
        return torch.softmax(torch.maximum(x + mask, least), -1)

    mask = torch.full((8, 8), -math.inf, dtype=dtype).triu(1)
    [graph] = capture(masked, torch.ones(8, 8, dtype=dtype), mask, torch.tensor(-math.inf))
    _, values, least = make_inputs(graph, "fresh", 0)
    values = from_storage(values, graph.tensors[1].dtype)
    assert set(np.unique(values <= -6e4)) == {True, False}
    assert set(np.unique(values[values > -6e4])) == {0.0}
    assert least < -1e38


class Sharing(torch.nn.Module):
    """A net with a buffer, and with one that views a part of it."""

    def __init__(self, start: int, write: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.register_buffer("whole", torch.zeros(6))
        self.register_buffer("part", self.whole[start:4])
        self.write = write

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.write(self, x)
        return self.part * 2 + self.whole[:4].sum()


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda net, x: net.whole.add_(1),
    "part": lambda net, x: net.part.add_(1),
    "view": lambda net, x: net.whole.view(2, 3)[0].mul_(2),
    "input": lambda net, x: x.add_(net.whole.sum()),
}


@pytest.mark.parametrize("write", ["whole", "part", "view"])
def test_a_write_into_memory_of_two_arguments_is_refused(write):
    with pytest.raises(CaptureError, match="shares memory with argument"):
        capture(Sharing(0, WRITES[write]), torch.ones(4))
    base = torch.ones(6)
    with pytest.raises(CaptureError, match="shares memory with argument"):
        capture(lambda x, y: x.add_(1) * y, base[:4], base[2:])


def test_memory_of_two_arguments_may_be_read_and_parts_of_it_may_be_written():
    assert capture(Sharing(0, WRITES["input"]), torch.ones(4))
    base = torch.ones(6)
    assert capture(lambda x, y: x.add_(1) * y, base[:3], base[3:])


def test_which_kernels_an_op_may_take_is_left_out():
    def attend(x):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    [graph] = capture(attend, torch.randn(1, 2, 4, 8))
    assert [op.target for op in graph.program.ops] == ["torch._C._nn.scaled_dot_product_attention"]


def test_a_dtype_that_graphs_cannot_hold_is_refused():
    with pytest.raises(CaptureError, match="argument x has dtype float8_e4m3fn"):
        spec_from_tensor("x", torch.zeros(2).to(torch.float8_e4m3fn))


def timm_net() -> tuple[torch.nn.Module, dict[str, Any]]:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    return timm.create_model("resnet10t", num_classes=10), {"x": torch.randn(1, 3, 64, 64)}


def transformers_net() -> tuple[torch.nn.Module, dict[str, Any]]:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    inputs = {"input_ids": torch.arange(12).view(2, 6), "attention_mask": torch.ones(2, 6).long()}
    return transformers.BertModel(config), inputs


@pytest.mark.parametrize("make", [timm_net, transformers_net])
def test_the_graph_of_a_published_net_computes_what_the_net_does(
    make: Callable[[], tuple[torch.nn.Module, dict[str, Any]]],
):
    if find_spec("torchvision"):  # both packages import it where it is there
        import_torchvision()
    torch.manual_seed(0)
    net, inputs = make()
    net.eval()
    with torch.no_grad():
        expected = net(**inputs)
    [captured] = capture_values(net, **inputs)
    outputs = rerun(captured)
    expected = tuple(expected.to_tuple()) if hasattr(expected, "to_tuple") else (expected,)
    assert_same(outputs[: len(expected)], expected)


def test_the_builtin_abs_is_that_of_torch():
    x = torch.tensor([-1.0, 2.0])
    [captured] = capture_values(lambda x: abs(x) + 1, x)
    assert targets(captured.graph)[0] in ("torch.abs", "Tensor.abs")
    assert_same(rerun(captured), (torch.tensor([2.0, 3.0]),))


def test_of_many_values_an_even_part_gives_mean_and_deviation():
    torch.manual_seed(0)
    many = torch.randn(1 << 21) * 3 + 5
    many[::2] += 4  # what repeats with a power of two is seen whole
    spec = spec_from_tensor("x", many)
    assert spec.mean == pytest.approx(float(many.mean()), abs=0.05)
    assert spec.std == pytest.approx(float(many.std()), abs=0.05)
    few = torch.tensor([1.0, 3.0])
    assert (spec_from_tensor("y", few).mean, spec_from_tensor("y", few).std) == (2.0, 1.0)
