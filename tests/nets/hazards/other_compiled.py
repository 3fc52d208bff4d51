"""A net beside which the user has compiled another one, which must not be compiled again."""

import torch
from torch import nn

KIND = "process"

GRAPHS: list[torch.fx.GraphModule] = []
OTHERS = []


def counted(graph, inputs):
    GRAPHS.append(graph)
    return graph.forward


def make():
    if not OTHERS:
        other = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
        OTHERS.append(torch.compile(other, backend=counted, dynamic=False))
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def state(net):
    with torch.no_grad():
        values = OTHERS[0](torch.ones(2, 8)).tolist()
    return values, len(GRAPHS)


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
    yield "the other net", lambda net: OTHERS[0](net(torch.ones(4, 16)))
