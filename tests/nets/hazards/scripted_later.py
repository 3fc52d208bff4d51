"""A net that callers give to `torch.jit.script`, which reads its type and its methods."""

import warnings

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def scripted(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = torch.jit.script(net)
    return result(torch.ones(3, 8)), [name for name, _ in result.named_parameters()]


def part(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(net.get_submodule("0"))(torch.ones(3, 8))


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "scripted", scripted
    yield "a part", part
