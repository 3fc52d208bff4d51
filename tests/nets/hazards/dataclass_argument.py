"""A batch that is a dataclass with a flag; the flag and the tensors in it count at each call."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import torch
from torch import nn

KIND = "form"


@dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor | None = None
    scale: float = 1.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, batch):
        y = self.net(batch.x) * batch.scale
        return y if batch.mask is None else y.masked_fill(batch.mask, 0.0)


def make():
    return Net().eval()


def example():
    return (Batch(torch.randn(4, 8)),)


def changed(net):
    batch = Batch(torch.ones(4, 8))
    before = net(batch)
    batch.scale, batch.mask = 2.0, torch.ones(4, 8) > 0.5
    return before, net(batch), net(replace(batch, mask=None))


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (Batch(x),)
    yield "another scale", (Batch(x, scale=3.0),)
    yield "a mask", (Batch(x, x > 0),)
    yield "another class", (SimpleNamespace(x=x, mask=None, scale=2.0),)
    yield "one batch, changed between calls", changed
    yield "refused: a dict", ({"x": x},)
