"""Places of maxima of a transposed sum, counted in its own order and not in that of the memory."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Transposed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(11)
        self.bias = nn.Parameter(torch.zeros(11, 9))

    def forward(self, a):
        total = a.t() + self.bias
        return (
            self.tower(a),
            total.argmax(),
            (a.t() + 1).argmin(),
            total.argmax(0),
            total.max(1).indices,
            a.t().flatten().topk(3).indices,
            (a.t() * 2).flatten().argsort(stable=True),
        )


def make():
    return Transposed().eval()


def example():
    return (torch.arange(99.0).reshape(9, 11),)


def calls():
    yield "shuffled", (torch.randperm(99).reshape(9, 11).float(),)
    yield "falling", (-torch.arange(99.0).reshape(9, 11),)
    yield "ties", (torch.zeros(9, 11),)
    yield "levels", (torch.randint(0, 4, (9, 11)).float(),)
    yield "NaN", (torch.full((9, 11), float("nan")),)
