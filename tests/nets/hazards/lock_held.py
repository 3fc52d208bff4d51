"""A net that holds a lock in each call, which cannot be copied, and reads under it."""

import threading

import torch
from torch import nn

KIND = "process"


class Locked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.lock = threading.Lock()
        self.scale = 1.0

    def forward(self, x):
        with self.lock:
            return self.net(x) * self.scale


def make():
    return Locked().eval()


def example():
    return (torch.randn(4, 16),)


def rescaled(net):
    with net.lock:
        net.scale = 2.0
    return net(torch.ones(4, 16)), net.lock.locked()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "another scale", rescaled
