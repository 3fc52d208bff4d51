"""Sums and means of many float16 numbers: taken wider and rounded once, and infinite past 65504."""

import torch
from torch import nn

KIND = "values"


class HalfSums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return (
            x.sum(-1),
            x.mean(-1),
            (x * self.scale).sum(),
            x.float().sum(-1),
            torch.linalg.vector_norm(x, dim=-1),
        )


def make():
    return HalfSums().eval().half()


def example():
    return (torch.rand(3, 4096).half() / 4096,)


def calls():
    yield "ones", (torch.ones(3, 4096).half(),)
    yield "small", (torch.full((3, 4096), 2.0**-14).half(),)
    yield "large", (torch.full((3, 4096), 64.0).half(),)
    yield "both signs", (torch.tensor([512.0, -512.0, 1.0, 0.0]).repeat(3, 1024).half(),)
    yield "one large", (torch.cat([torch.full((3, 1), 2048.0), torch.ones(3, 4095)], -1).half(),)
