"""Running maxima with their places, products and logarithms of sums, of floats and of ids."""

import torch
from torch import nn

KIND = "indices"


class Peaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(12))

    def forward(self, x, ids):
        x = x * self.scale
        highest, lowest = x.cummax(-1), x.cummin(-1)
        return (
            highest.values,
            highest.indices,
            lowest.indices,
            x.cumprod(-1),
            x.logcumsumexp(-1),
            ids.cumprod(-1),
            ids.cummax(-1).values,
        )


def make():
    return Peaks().eval()


def example():
    return torch.rand(4, 12) + 0.1, torch.randint(1, 3, (4, 12))


def calls():
    x, ids = torch.randn(4, 12), torch.randint(-9, 9, (4, 12))
    yield "negative", (x, ids)
    yield "ties", (torch.zeros(4, 12), ids * 0)
    special = x.clone()
    special[0, 5], special[1, 3], special[2, 0] = float("nan"), float("inf"), -float("inf")
    special[1, 8], special[3, 4] = -float("inf"), 0.0
    yield "special values", (special, ids + 2**53)
    yield "large", (torch.full((4, 12), 90.0), ids + 2**32)
