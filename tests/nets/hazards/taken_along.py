"""Values taken along a dimension: by their own order, and by places that wrap at its ends."""

import torch
from torch import nn

KIND = "indices"


class Along(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(10, 3)

    def forward(self, x, places):
        order = x.argsort(dim=-1, stable=True)
        sorted_x = torch.take_along_dim(x, order, -1)
        taken = torch.take_along_dim(x, places, 1)
        back = torch.zeros_like(x).scatter(1, order, sorted_x)
        return self.out(back.nan_to_num(0.0, 1.0, -1.0)), order, sorted_x, taken, back


def make():
    return Along().eval()


def example():
    return torch.rand(4, 10), torch.randint(1, 9, (4, 3))


def calls():
    x, places = torch.randint(0, 3, (4, 10)).float(), torch.randint(0, 10, (4, 3))
    yield "ties", (x, places)
    yield "repeated", (torch.randn(4, 10), places * 0 + 9)
    special = torch.randn(4, 10)
    special[0, 0], special[1, 4], special[2, 9] = float("nan"), float("inf"), -float("inf")
    yield "special values", (special, places)
    yield "beyond the end", (x, places + 10)
    yield "from the end", (x, places - 10)
    yield "far", (x, places + 2**32)
