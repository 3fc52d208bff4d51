"""An argmax over many zeros after a ReLU: the first of them, as eager PyTorch gives it."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.table = nn.Embedding(40, 8)

    def forward(self, x):
        h = torch.relu(x)
        best, worst = h.argmax(-1), h.argmin(-1)
        return (
            self.tower(self.table(best)),
            best,
            worst,
            h.argmax(0),
            h.argmax(),
            (x > 0).int().argmax(-1),
        )


def make():
    return Sparse().eval()


def example():
    return (torch.rand(6, 40) + 0.1,)


def calls():
    yield "all negative", (-torch.rand(6, 40),)
    x = torch.randn(6, 40)
    x[2] = -1.0
    yield "one row negative", (x,)
    yield "zeros", (torch.zeros(6, 40),)
    yield "zeros of both signs", (torch.tensor([-0.0, 0.0]).repeat(6, 20),)
    yield "saturated", (torch.randn(6, 40).sign(),)
