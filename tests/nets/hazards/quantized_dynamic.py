"""A net of torch.ao with linear layers in 8 bits, whose activations are quantised at each call."""

import warnings

import torch
from torch import nn

KIND = "process"


def make():
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, torch.qint8)


def example():
    return (torch.randn(4, 32),)


def calls():
    yield "fresh", (torch.randn(4, 32),)
    yield "a row that is far larger", (torch.randn(4, 32) * torch.tensor([[1e3], [1], [1], [1]]),)
    yield "zeros", (torch.zeros(4, 32),)
    yield "another batch", (torch.randn(9, 32),)
    yield "weights", lambda net: net.get_submodule("0").weight().int_repr().sum()
