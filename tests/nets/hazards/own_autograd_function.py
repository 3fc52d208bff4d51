"""A function with a backward of its own, as quantisers with straight-through gradients have."""

import torch
from torch import nn

KIND = "values"


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.save_for_backward(x)
        return (x * steps).round() / steps

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(Rounded.apply(torch.tanh(self.body(x)), 8.0))


class Steps(nn.Module):
    def forward(self, x):
        return Rounded.apply(x, 2.0), Rounded.apply(x.abs(), 0.5)


def make():
    return Steps().eval()


def example():
    return (torch.randn(6, 8),)


def calls():
    yield "halves", (torch.arange(48).reshape(6, 8) / 4 - 6.0,)
    yield "large", (torch.randn(6, 8) * 1e6,)
    yield (
        "special values",
        (torch.tensor([[float("nan"), float("inf"), -float("inf"), -0.0] * 2] * 6),),
    )
