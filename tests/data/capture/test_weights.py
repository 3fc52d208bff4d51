"""Weights without memory: what is fake, what stays real, and the statistics that are known."""

import copy
import resource

import pytest
import torch

from passnet.data.capture.capture import module_graph
from passnet.data.capture.trace import Trace
from passnet.data.capture.weights import FakeWeights
from passnet.graph.canonical import fingerprints
from passnet.graph.fx.from_fx import is_fake
from passnet.graph.text.render import render_program
from tests.data.capture import own


def graphs_of(module, x, sample=None):
    graphs = []
    Trace(
        module,
        lambda segment: graphs.append(module_graph(segment.module, segment.arguments, sample)),
    ).run([x], {})
    return [captured.graph for captured in graphs]


def test_parameters_are_fake_and_tables_are_real():
    with FakeWeights():
        net = own.Small()
    assert all(is_fake(weight) for weight in net.parameters())
    assert net.order.tolist() == list(range(7, -1, -1))


def test_a_copy_of_a_net_is_as_fake_as_the_net():
    with FakeWeights():
        net = copy.deepcopy(own.Small())
        norm = copy.deepcopy(torch.nn.BatchNorm2d(4))
    assert is_fake(net.first.weight) and not is_fake(net.order)
    assert norm.num_batches_tracked.item() == 0


@pytest.mark.parametrize("make", [own.Small, own.Broken], ids=["one graph", "graph break"])
def test_fake_and_real_weights_give_the_same_graphs(make):
    weights = FakeWeights()
    with weights:
        fake = make()
    x = torch.ones(2, 4)
    first, second = graphs_of(fake, x, weights.sample), graphs_of(make(), x)
    for left_graph, right_graph in zip(first, second, strict=True):
        assert render_program(left_graph.program) == render_program(right_graph.program)
        assert fingerprints(left_graph) == fingerprints(right_graph)


def test_seven_billion_parameters_take_no_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    weights = FakeWeights()
    with weights:
        net, x = own.huge()
    assert sum(weight.numel() for weight in net.parameters()) > 6.9e9
    [graph] = graphs_of(net, x, weights.sample)
    assert len(graph.program.ops) == 26
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300 * 1024


INITS = {
    "normal": lambda x: torch.nn.init.normal_(x, 1.0, 0.5),
    "uniform": lambda x: torch.nn.init.uniform_(x, -1, 3),
    "truncated": lambda x: torch.nn.init.trunc_normal_(x, std=0.02),
    "kaiming": torch.nn.init.kaiming_uniform_,
    "xavier": torch.nn.init.xavier_normal_,
    "ones": torch.nn.init.ones_,
    "constant": lambda x: torch.nn.init.constant_(x, 0.3),
    "scaled": lambda x: x.normal_().mul_(0.1).add_(2),
    "copied": lambda x: x.copy_(torch.linspace(0, 1, x.numel()).view(x.shape)),
    "a row zeroed": lambda x: torch.nn.init.normal_(x)[0].fill_(0),
}


@pytest.mark.parametrize("init", INITS.values(), ids=INITS.keys())
def test_statistics_are_those_of_real_initialisation(init):
    torch.manual_seed(0)
    with torch.no_grad():
        real = torch.empty(512, 300)
        init(real)
        weights = FakeWeights()
        with weights:
            fake = torch.empty(512, 300)
            init(fake)
    assert is_fake(fake)
    sample = weights.sample(fake)
    assert sample is not None
    spread = float(real.std())
    assert abs(float(sample.mean() - real.mean())) <= 0.06 * spread + 1e-6
    assert abs(float(sample.std()) - spread) <= 0.05 * spread + 1e-6


def test_statistics_that_are_not_known_are_none():
    weights = FakeWeights()
    with weights, torch.no_grad():
        assert weights.sample(torch.empty(8, 8)) is None
        normal = torch.nn.init.normal_(torch.empty(8, 8))
        assert weights.sample(normal) is not None
        assert weights.sample(normal @ normal) is None


def test_a_parameter_made_of_large_random_numbers_is_fake_with_its_statistics():
    weights = FakeWeights()
    with weights:
        table = torch.nn.Parameter(torch.randn(1000, 768) * 0.02)
    assert is_fake(table)
    sample = weights.sample(table)
    assert sample is not None and abs(float(sample.std()) - 0.02) < 0.002
