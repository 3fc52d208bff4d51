"""A net that warns of inputs beyond its training's: each such call warns, others do not."""

import warnings

import torch
from torch import nn

KIND = "control flow"


class Warned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4))

    def forward(self, x, limit):
        if x.amax() > limit.item():
            warnings.warn(f"{float(x.amax()):g} is beyond the training's inputs", stacklevel=2)
        return self.body(x)


def make():
    return Warned().eval()


def example():
    return torch.randn(3, 12), torch.tensor(100.0)


def noted(value):
    def use(net):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            returned = net(torch.full((3, 12), value), torch.tensor(100.0))
        return returned, [str(each.message) for each in caught]

    return use


def calls():
    yield "fresh", (torch.randn(3, 12), torch.tensor(100.0))
    yield "large", noted(200.0)
    yield "usual", noted(2.0)
    yield "large again", noted(300.0)
