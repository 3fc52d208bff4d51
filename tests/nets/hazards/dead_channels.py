"""A squeeze-and-excitation block and a mean shared over channels: channels of 0 stay 0."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Excite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.down, self.up = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x):
        h = torch.relu(x)
        pooled = h.mean((2, 3))
        gates = torch.sigmoid(self.up(torch.relu(self.down(pooled))))
        shares = pooled / pooled.sum(-1, keepdim=True)
        alive = (pooled > 0).sum(-1)
        return (
            self.tower(gates),
            h * gates[:, :, None, None],
            shares,
            alive,
            h.amax((2, 3)) / pooled,
        )


def make():
    return Excite().eval()


def example():
    return (torch.rand(2, 8, 6, 6) + 0.1,)


def calls():
    yield "all dead", (-torch.rand(2, 8, 6, 6),)
    x = torch.randn(2, 8, 6, 6)
    x[0, 2:5] = -1.0
    yield "some dead", (x.clone(),)
    x[1, 3, 2, 2] = float("nan")
    yield "a NaN", (x,)
    yield "tiny", (torch.full((2, 8, 6, 6), 1e-42),)
