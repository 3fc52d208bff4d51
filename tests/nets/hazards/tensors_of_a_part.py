"""A part with an order, a mask and a shift in a list and a dict, which are updated in place."""

import torch
from torch import nn

KIND = "state"


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.orders = [torch.arange(12)]
        self.held = {"mask": torch.ones(12, dtype=torch.bool), "shift": torch.zeros(12)}

    def forward(self, x):
        return torch.where(self.held["mask"], x[:, self.orders[0]], 0.0) + self.held["shift"]


def make():
    return nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12), Part()).eval()


def example():
    return (torch.randn(3, 12),)


def after(change):
    def run(net):
        change(net[3])
        return net(torch.linspace(-2, 2, 36).reshape(3, 12))

    return run


def calls():
    yield "fresh", example()
    yield "another order", after(lambda part: part.orders[0].copy_(torch.arange(12).flip(0)))
    yield "a mask", after(lambda part: part.held["mask"][3:6].fill_(False))
    yield "a shift", after(lambda part: part.held["shift"].add_(2.0))
