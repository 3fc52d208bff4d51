"""A softmax in float16 whose rows sum to one, and to NaN where all scores are minus infinity."""

import torch
from torch import nn

KIND = "process"


class Sums(nn.Module):
    def forward(self, x):
        weights = x.softmax(-1)
        return weights.sum(-1), (weights * x.abs().clamp(max=8)).amax(-1)


def make():
    return Sums().eval().half()


def example():
    return (torch.randn(8, 32).half(),)


def calls():
    yield "fresh", (torch.randn(8, 32).half(),)
    yield "large", (1000 * torch.randn(8, 32).half(),)
    yield "minus infinity", (torch.full((8, 32), float("-inf")).half(),)
    yield "float32", (torch.randn(8, 32),)
