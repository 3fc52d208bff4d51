"""Numbers in a deque, a partial function, a dict of the class and more, changed in place."""

from collections import deque
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

KIND = "state"


@dataclass(slots=True)
class Window:
    size: float = 2.0


class Holder(nn.Module):
    table = {"near": 1.0}  # noqa: RUF012 (it is changed)

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12))
        self.window, self.last = Window(), deque([1.0, 2.0])
        self.act, self.acts = partial(torch.clamp, min=-1.0), [nn.LeakyReLU(0.1)]
        self.body[0].weight.gain = 1.5

    def forward(self, x):
        y = self.body(x) * self.window.size * self.table["near"] + sum(self.last)
        return self.acts[0](self.act(y)) * self.body[0].weight.gain


def make():
    Holder.table["near"] = 1.0
    return Holder().eval()


def example():
    return (torch.randn(3, 12),)


def after(change):
    def run(net):
        change(net)
        return net(torch.linspace(-2, 2, 36).reshape(3, 12))

    return run


def calls():
    yield "fresh", example()
    yield "an object with slots", after(lambda net: setattr(net.window, "size", 5.0))
    yield "a deque", after(lambda net: net.last.append(3.0))
    yield "a partial function", after(lambda net: net.act.keywords.update(min=0.0))
    yield "a module in a list", after(lambda net: setattr(net.acts[0], "negative_slope", 0.5))
    yield "an attribute of a weight", after(lambda net: setattr(net.body[0].weight, "gain", -1.0))
    yield "a dict of the class", after(lambda net: net.table.update(near=3.0))
