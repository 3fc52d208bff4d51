"""A net in float16: rows that overflow 65504 are infinite or NaN, and small ones are kept."""

import torch
from torch import nn

KIND = "values"


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 8)

    def forward(self, x):
        h = torch.relu(self.up(x))
        return self.down(h), self.norm(x), x * x, x.softmax(-1)


def make():
    return Half().eval().half()


def example():
    return (torch.rand(6, 32).half(),)


def calls():
    yield "fresh", (torch.randn(6, 32).half(),)
    for scale in (300.0, 6e4, 1e-4, 1e-7):
        yield f"of {scale:g}", ((scale * torch.randn(6, 32)).half(),)
    x = torch.randn(6, 32).half()
    x[1, 1], x[2, 2] = float("inf"), float("nan")
    yield "special values", (x,)
    yield "constant", (torch.full((6, 32), 1.0).half(),)
