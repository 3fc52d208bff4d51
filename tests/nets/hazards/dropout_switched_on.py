"""A net whose dropout alone is set to training later: it drops by torch's generator."""

import torch
from torch import nn

KIND = "state"


class Uncertain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.drop = nn.Sequential(nn.Linear(12, 32), nn.GELU()), nn.Dropout(0.5)
        self.norm, self.out = nn.BatchNorm1d(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.norm(self.drop(self.stem(x))))


def make():
    return Uncertain().eval()


def example():
    return (torch.randn(4, 12),)


def change(net):
    net.drop.train()


def sampled(net):
    return [net(torch.ones(4, 12)) for _ in range(3)]


def norm_too(net):
    net.norm.train()
    return net(torch.linspace(-1, 1, 48).reshape(4, 12))


def evaluated(net):
    net.eval()
    return net(torch.ones(4, 12))


def calls():
    yield "dropout on", lambda net: net(torch.linspace(-1, 1, 48).reshape(4, 12))
    yield "three samples", sampled
    yield "its norm in training too", norm_too
    yield "in evaluation mode", evaluated
