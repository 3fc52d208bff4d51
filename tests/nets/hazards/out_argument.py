"""A net that computes into an argument `out` and returns it, if one is given."""

import torch
from torch import nn

KIND = "form"


class Out(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 8), requires_grad=False)

    def forward(self, x, out=None):
        y = torch.mm(x, self.weight, out=out)
        return torch.tanh(y, out=out)


def make():
    return Out().eval()


def example():
    return {"x": torch.randn(4, 16), "out": torch.zeros(4, 8)}


def is_same(net):
    out = torch.zeros(4, 8)
    return net(torch.ones(4, 16), out=out) is out, out


def calls():
    x = torch.randn(4, 16)
    yield "fresh", {"x": x, "out": torch.ones(4, 8)}
    yield "none is given", (x,)
    yield "identity", is_same
    yield "columns", {"x": x, "out": torch.zeros(8, 4).T}
    yield "an empty one, which is resized", {"x": x, "out": torch.empty(0)}
    yield "refused: another dtype", {"x": x, "out": torch.zeros(4, 8, dtype=torch.int64)}
