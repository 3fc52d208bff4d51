"""A net with a hook that collects activations in a list outside of it, one for each call."""

import torch
from torch import nn

KIND = "process"

SEEN: list[list[torch.Tensor]] = []


def make():
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
    seen: list[torch.Tensor] = []
    net[1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    net._number = len(SEEN)
    SEEN.append(seen)
    return net


def state(net):
    return len(SEEN[net._number])


def example():
    return (torch.randn(4, 16),)


def collected(net):
    seen = SEEN[net._number]
    before = len(seen)
    output = net(torch.ones(4, 16))
    return output, len(seen) - before, seen[-1]


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "what was collected", collected
    yield "how much in all", lambda net: len(SEEN[net._number])
