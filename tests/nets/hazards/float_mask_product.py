"""Values masked by a product: what is NaN or infinite stays so, unlike with where."""

import torch
from torch import nn

KIND = "values"


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(10, 6)

    def forward(self, x, keep):
        product = x * keep
        chosen = torch.where(keep > 0, x, torch.zeros_like(x))
        return self.proj(product), self.proj(chosen), product.sum(-1) / keep.sum(-1), x * (1 - keep)


def make():
    return Masked().eval()


def example():
    return torch.rand(5, 10), torch.ones(5, 10)


def calls():
    x, keep = torch.randn(5, 10), (torch.rand(5, 10) > 0.4).float()
    yield "some masked", (x, keep)
    for value in (float("nan"), float("inf")):
        special = torch.where(keep > 0, x, torch.tensor(value))
        yield f"{value} where masked", (special, keep)
    yield "all masked", (x, keep * 0)
