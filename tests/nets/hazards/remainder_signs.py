"""`%` has the sign of the divisor and fmod that of the dividend; a divisor of 0 gives NaN."""

import torch
from torch import nn

KIND = "values"


class Remainders(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.period = nn.Parameter(torch.tensor([2.0, -2.0, 0.5, 4.0]))

    def forward(self, x, y):
        return (
            x % self.period,
            torch.fmod(x, self.period),
            torch.remainder(x, y),
            torch.fmod(x, y),
            x // self.period,
            torch.div(x, y, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="floor"),
        )


def make():
    return Remainders().eval()


def example():
    return torch.rand(5, 4) + 4.1, torch.rand(5, 4) + 0.5


def calls():
    quarters = torch.arange(-10, 10).reshape(5, 4) / 4
    yield "negative", (-torch.rand(5, 4) - 4.1, torch.rand(5, 4) + 0.5)
    yield "exact multiples", (quarters, torch.full((5, 4), 0.25))
    yield "negative divisors", (quarters, torch.full((5, 4), -0.75))
    yield "divided by zero", (quarters, torch.zeros(5, 4))
    yield "infinite", (torch.full((5, 4), float("inf")), torch.full((5, 4), 3.0))
    yield "by infinity", (quarters, torch.full((5, 4), -float("inf")))
