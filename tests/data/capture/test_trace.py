"""What is noted while graphs run: order, and data that flows from one to the next."""

import torch

from passnet.data.capture.trace import Edge, Trace
from passnet.data.capture.weights import FakeWeights
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


def test_time_in_dynamo_is_less_than_in_all():
    trace, _ = traced(own.Small(), torch.ones(2, 4))
    assert trace.dynamo_s > 0
    assert trace.outside_s > 0
