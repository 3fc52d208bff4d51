"""A net in bfloat16: large values stay finite, and whole numbers beyond 256 are rounded."""

import torch
from torch import nn

KIND = "values"


class Brain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 8)

    def forward(self, x):
        h = nn.functional.gelu(self.up(x))
        return self.down(h), x + 1, x * x, x.sum(-1), x.argmax(-1)


def make():
    return Brain().eval().bfloat16()


def example():
    return (torch.randperm(192).reshape(6, 32).bfloat16(),)


def calls():
    yield "whole", (torch.arange(192).reshape(6, 32).flip(1).bfloat16(),)
    yield "rounded", (torch.randint(256, 4096, (6, 32)).bfloat16(),)
    yield "fractions", (torch.rand(6, 32).bfloat16(),)
    yield "of 1e30", ((1e30 * torch.randn(6, 32)).bfloat16(),)
    x = torch.randn(6, 32).bfloat16()
    x[1, 1], x[2, 2] = float("inf"), float("nan")
    yield "special values", (x,)
    yield "ties", (torch.ones(6, 32).bfloat16(),)
