"""A net with defaults and an argument by name only: called by position, by name, and in between."""

import torch
from torch import nn

KIND = "form"


class Styles(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, scale=2.0, shift=None, *, keep=False):
        y = self.net(x) * scale
        y = y if shift is None else y + shift
        return torch.cat([y, x]) if keep else y


def make():
    return Styles().eval()


def example():
    return {"x": torch.randn(4, 8), "scale": 2.0, "shift": torch.ones(8)}


def calls():
    x, shift = torch.randn(4, 8), torch.randn(8)
    yield "by position", (x, 2.0, shift)
    yield "defaults", (x,)
    yield "another scale", {"x": x, "scale": 3.0, "shift": shift}
    yield "another order", {"shift": shift, "scale": 2.0, "x": x}
    yield "a whole number", {"x": x, "scale": 2, "shift": shift}
    yield "by position and by name", lambda net: net(x, shift=shift, keep=True)
    yield "a scale that is a tensor", (x, torch.tensor(2.0), shift)
    yield "None by name", lambda net: net(x, shift=None)
    yield "refused: an unknown name", {"x": x, "bias": shift}
    yield "refused: too many", (x, 2.0, shift, True)
    yield "refused: twice", lambda net: net(x, x=x)
