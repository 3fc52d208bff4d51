"""The ranges of a net: equal ones once, with all their places, and laid out as they are there."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.data.capture.capture import CapturedGraph, capture_values
from passnet.errors import CutError
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.optimizer.choose.ranges import NetRange, laid_out, net_ranges
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files
from passnet.passes.folder import inspect_folder
from passnet.passes.library.store import argument_forms
from passnet.passes.load import load_passes
from passnet.passes.match.pattern import Pass
from tests.graph.programs import program_of

ADD = program_of("y = a + b", returns="(y,)")


class Blocks(torch.nn.Module):
    """Two products with the same ops behind them, and others at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x)) * 2.0
        x = torch.tanh(self.second(x)) * 2.0
        return torch.softmax(x @ x, -1)


def captured(net: torch.nn.Module, *inputs: torch.Tensor) -> list[CapturedGraph]:
    with torch.no_grad():
        return capture_values(net, *inputs)


def spans(each: NetRange) -> list[tuple[int, int]]:
    return [place.span for place in each.places]


def test_equal_ranges_come_once_with_all_their_places() -> None:
    graphs = captured(Blocks(), torch.randn(8, 8))
    ranges, left_out = net_ranges(graphs)
    assert not left_out
    by_ops = {each.key.ops: each for each in ranges}
    assert spans(by_ops["torch.tanh", "operator.mul"]) == [(1, 3), (4, 6)]
    assert spans(by_ops["torch.softmax",]) == [(7, 8)]
    assert len(ranges) == 2, "products are in no range that was asked for"
    twice, _ = net_ranges([*graphs, *graphs])
    assert [len(each.places) for each in twice] == [2 * len(each.places) for each in ranges]


@pytest.mark.parametrize("computes_in_float16", [False, True])
def test_a_product_of_float16_is_a_range_where_float32_is_faster(
    computes_in_float16: bool,
) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3), torch.nn.Tanh()).half()
    graphs = captured(net, torch.randn(1, 8, 20, 20).half())
    ranges, _ = net_ranges(graphs, has_float16=computes_in_float16)
    is_range = ("torch.conv2d",) in {each.key.ops for each in ranges}
    assert is_range is not computes_in_float16


def test_ops_of_a_pass_that_is_known_are_a_range_with_a_product_in_it_too() -> None:
    graphs = captured(Blocks(), torch.randn(8, 8))
    sequence = ("torch._C._nn.linear", "torch.tanh")
    by_ops = {each.key.ops: each for each in net_ranges(graphs, [sequence])[0]}
    assert spans(by_ops[sequence]) == [(0, 2), (3, 5)]
    assert argument_forms(by_ops[sequence].key.graph) == ("float32[8, 8]", "float32[8, 8]",
                                                          "float32[8]")  # fmt: skip


def test_parts_begin_where_a_kernel_does() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.softmax(x, -1)
            return torch.softmax(y.transpose(0, 1).contiguous() * 3.0, 1)

    ranges, _ = net_ranges(captured(Net(), torch.randn(40, 60)))
    found = sorted(span for each in ranges for span in spans(each))
    assert (0, 5) in found and len(found) > 1
    assert {start for start, _ in found} > {0}, "a part begins at the second kernel"


def test_an_argument_has_the_strides_that_it_has_in_the_net() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x) * 2.0

    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    [each] = net_ranges(captured(Net(), x))[0]
    [plain] = net_ranges(captured(Net(), torch.randn(2, 3, 4, 5)))[0]
    assert each.key.num_layouts == 1 and plain.key.num_layouts == 0
    assert each.key.ops == plain.key.ops and each.key.fingerprint != plain.key.fingerprint
    assert argument_forms(each.key.graph) == ("float32[2, 4, 5, 3]",)
    whole = x.permute(0, 2, 3, 1)
    assert whole.is_contiguous()
    [result] = build(each.key.graph.program)(whole)
    assert torch.equal(result, torch.tanh(x) * 2.0) and result.stride() == x.stride()


@pytest.mark.parametrize("is_strided", [True, False])
def test_a_pass_may_be_only_for_the_strides_that_its_kernel_was_made_for(
    tmp_path: Path, is_strided: bool
) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x) * 2.0

    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    [each] = net_ranges(captured(Net(), x))[0]
    lowering = GraphLowering(each.key.graph, "range", first_op=each.key.num_layouts)
    [span] = lowering.largest(())
    assert span == (1, 3), "what lays out arguments is not replaced"
    lowered = lowering.lowered(span, ())
    assert lowered is not None
    write_files(pass_folder([RangeSource(lowered, cpp_source(lowered.code))], is_strided), tmp_path)
    [pass_] = load_passes(inspect_folder(tmp_path))
    assert isinstance(pass_, Pass) and pass_.guards is not None
    name = str(pass_.pattern.params[0].target)
    assert pass_.guards.refusal({name: x}) is None
    assert (pass_.guards.refusal({name: x.contiguous()}) is not None) == is_strided
    assert pass_.guards.refusal({name: x[:1]}) is not None


def test_what_has_gaps_in_memory_is_left_out_with_its_reason() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x) * 2.0

    ranges, [left] = net_ranges(captured(Net(), torch.randn(4, 8)[:, ::2]))
    assert not ranges and "strides [8, 2], with gaps or repeats" in left[1]


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_arguments_of_any_order_are_laid_out(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    whole = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    a = whole.permute(order)
    b = torch.ones(a.shape)
    specs = tuple(TensorSpec(name, tuple(a.shape), "float32", original_name=name) for name in "ab")
    graph, num_layouts = laid_out(Graph(ADD, specs), {"a": a.stride()})
    assert num_layouts == (not a.is_contiguous())
    [first, second] = [torch.empty(spec.shape) for spec in graph.tensors]
    first.view(-1)[:] = whole.view(-1)
    [result] = build(graph.program)(first, second.copy_(b))
    assert torch.equal(result, a + b)


def test_recorded_values_are_not_laid_out() -> None:
    specs = tuple(TensorSpec(name, (2, 2), "int64", data=(1, 2, 3, 4)) for name in "ab")
    assert laid_out(Graph(ADD, specs), {"a": (2, 1)})[1] == 0
    with pytest.raises(CutError, match="recorded values"):
        laid_out(Graph(ADD, specs), {"a": (1, 2)})
