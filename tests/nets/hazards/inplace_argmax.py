"""Places of maxima after operations in place, of a transposed and of a sliced copy."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        self.table = nn.Embedding(35, 4)

    def forward(self, x):
        y = x.clone()
        y.neg_()
        turned = y.t()
        z = x.clone()
        z[:, 2:] *= -1
        z[0].zero_()
        return (
            turned.argmax(),
            turned.argmin(),
            turned.argmax(0),
            z.argmax(),
            self.tower(self.table(z.argmin())),
        )


def make():
    return InPlace().eval()


def example():
    return (torch.randperm(35).reshape(5, 7).float() + 1,)


def calls():
    for label in ("shuffled", "again"):
        yield label, (torch.randperm(35).reshape(5, 7).float() - 17,)
    yield "ones", (torch.ones(5, 7),)
    yield "zeros", (torch.zeros(5, 7),)
    x = torch.randperm(35).reshape(5, 7).float()
    x[3, 3] = float("nan")
    yield "a NaN", (x,)
