"""Softplus with a low threshold, above which it is the identity: a jump that must stay."""

import torch
from torch import nn

KIND = "values"


class Jump(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.low = nn.Softplus(beta=0.5, threshold=2.0)
        self.usual = nn.Softplus()
        self.sharp = nn.Softplus(beta=4.0, threshold=1.0)

    def forward(self, x):
        return self.low(x), self.usual(x), self.sharp(x)


def make():
    return Jump().eval()


def example():
    return (0.2 * torch.rand(6, 9),)


def calls():
    for value in (1.0, 3.9, 4.1, 19.0, 21.0, 100.0, -30.0, -150.0):
        yield f"around {value:g}", (value + 0.05 * torch.rand(6, 9),)
    yield (
        "special values",
        (torch.tensor([float("inf"), -float("inf"), float("nan")]).repeat(6, 3),),
    )
