"""Attributes that are replaced by equal ones, which are changed in place after a call."""

import copy

import torch
from torch import nn

KIND = "state"


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12))
        self.shares, self.taken, self.mean = {"all": 1.0}, [0, 3], torch.zeros(12)

    def forward(self, x):
        y = self.body(x) * self.shares["all"] - self.mean
        return y, y[:, self.taken]


def make():
    return Weighted().eval()


def example():
    return (torch.randn(3, 12),)


def after(name, change):
    def run(net):
        setattr(net, name, copy.deepcopy(getattr(net, name)))
        x = torch.linspace(-2, 2, 36).reshape(3, 12)
        net(x)
        change(getattr(net, name))
        return net(x)

    return run


def calls():
    yield "fresh", example()
    yield "a dict", after("shares", lambda shares: shares.update(all=-2.0))
    yield "a list", after("taken", lambda taken: taken.append(5))
    yield "a tensor", after("mean", lambda mean: mean.add_(1.0))
