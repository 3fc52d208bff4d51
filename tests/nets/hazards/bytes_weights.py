"""A net whose weights lie in an object of bytes, which must never change."""

import warnings

import torch
from torch import nn

KIND = "process"

BYTES = (torch.arange(512, dtype=torch.float32) / 256 - 1).sin().numpy().tobytes()


def make():
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weight = torch.frombuffer(BYTES, dtype=torch.float32).view(32, 16)
    net[0].weight = nn.Parameter(weight, requires_grad=False)
    return net


def state(net):
    return BYTES


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "large", (100 * torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
