"""A net that is its own deep copy, as registries make them: what is done to it, all see."""

import torch
from torch import nn

KIND = "process"


class Single(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def __deepcopy__(self, memo):
        return self

    def forward(self, x):
        self.count += 1
        return self.norm(self.net(x)) * self.count


def make():
    return Single().eval()


def state(net):
    return int(net.count), net.net.weight.tolist()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "ones", lambda net: net(torch.ones(4, 16))
    yield "twice", lambda net: [net(torch.ones(4, 16)) for _ in range(2)]
    yield "the count", lambda net: int(net.count)
