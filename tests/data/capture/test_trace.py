"""What is noted while graphs run: order, and data that flows from one to the next."""

import torch

from passnet.data.capture.trace import Edge, Trace
from passnet.data.capture.weights import FakeWeights
from passnet.graph.fx.from_fx import is_fake
from tests.data.capture import own


def traced(module, *inputs):
    trace = Trace(module, lambda segment: None)
    result = trace.run(inputs, {})
    return trace, result


def test_a_graph_break_is_two_graphs_with_data_between():
    trace, _ = traced(own.Broken(), torch.ones(2, 4))
    assert trace.calls == [0, 1]
    [edge] = trace.edges
    assert (edge.call, edge.source, edge.output) == (1, 0, 0)
    names = [node.name for node in trace.segments[1].module.graph.nodes if node.op == "placeholder"]
    assert "y" in names[edge.argument].lower()


def test_two_graph_breaks_are_three_graphs_in_a_row():
    layer = torch.nn.Linear(4, 4)

    def net(x):
        x = layer(x)
        torch._dynamo.graph_break()
        x = layer(x)
        torch._dynamo.graph_break()
        return layer(x)

    trace, _ = traced(net, torch.ones(2, 4))
    assert len(trace.calls) == 3
    assert [(edge.call, edge.source) for edge in trace.edges] == [(1, 0), (2, 1)]
    assert all(isinstance(edge, Edge) for edge in trace.edges)


def test_fake_outputs_have_the_shapes_of_real_ones():
    weights = FakeWeights()
    with weights:
        fake = own.Broken()
    x = torch.ones(2, 4)
    trace, result = traced(fake, x)
    _, expected = traced(own.Broken(), x)
    assert (result.shape, result.dtype, result.stride()) == (
        expected.shape, expected.dtype, expected.stride(),
    )  # fmt: skip
    assert len(trace.edges) == 1


class Masked(torch.nn.Module):
    """A mask of an input, and one that a weight is written into, cross a graph break."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, keep):
        mask = (1.0 - keep) * -1e5
        other = torch.zeros(4, 4)
        other[0] = self.layer.bias
        y = self.layer(x)
        torch._dynamo.graph_break()
        return (y + mask).softmax(-1) + other


def test_values_that_depend_on_no_fake_weight_stay_known():
    weights = FakeWeights()
    with weights:
        fake = Masked()
    keep = torch.ones(4, 4).tril()
    trace, _ = traced(fake, torch.ones(4, 4), keep)
    segment = trace.segments[1]
    names = [node.name for node in segment.module.graph.nodes if node.op == "placeholder"]
    mask, other, y = (
        next(value for name, value in zip(names, segment.arguments, strict=True) if word in name)
        for word in ("mask", "other", "y")
    )
    assert is_fake(y) and is_fake(other)
    assert not is_fake(mask) and mask.equal((1.0 - keep) * -1e5)


def test_time_in_dynamo_is_less_than_in_all():
    trace, _ = traced(own.Small(), torch.ones(2, 4))
    assert trace.dynamo_s > 0
    assert trace.outside_s > 0
