"""A net that callers trace, script, export, compile and rewrite; each result follows the net."""

import warnings

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def traced(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = torch.jit.trace(net, torch.ones(4, 8))
    net.get_parameter("2.bias").data.add_(1)
    return result(torch.full((2, 8), 0.5)), net(torch.full((2, 8), 0.5))


def exported(net):
    program = torch.export.export(net, (torch.ones(4, 8),))
    return program.module()(torch.zeros(4, 8)), list(program.state_dict)


def compiled(net):
    result = torch.compile(net, backend="eager")
    before = result(torch.ones(4, 8))
    net.get_parameter("2.bias").data.add_(1)
    return before, result(torch.ones(4, 8)), result(torch.ones(3, 8))


def rewritten(net):
    result = torch.fx.symbolic_trace(net)
    return result(torch.ones(4, 8)), [node.op for node in result.graph.nodes]


def calls():
    yield "traced", traced
    yield "exported", exported
    yield "compiled", compiled
    yield "rewritten", rewritten
    yield "afterwards", lambda net: net(torch.ones(4, 8))
