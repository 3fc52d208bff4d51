"""A net in a process whose environment other programs inherit: no variable is set or removed."""

import os

import torch
from torch import nn

KIND = "process"


def make():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def state(net):
    return sorted(os.environ.items())


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
