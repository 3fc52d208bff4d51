"""A net that computes one step in float16 between float32 ones: it overflows there and rounds."""

import torch
from torch import nn

KIND = "values"


class Between(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(16, 16)

    def forward(self, x):
        short = x.half()
        back = short.float()
        brain = x.bfloat16().float()
        inverse = torch.where(back.isinf(), torch.zeros_like(back), back)
        return back, brain, self.proj(inverse), (short * 4).float(), back.int() % 2


def make():
    return Between().eval()


def example():
    return (torch.randint(1, 200, (4, 16)).float(),)


def calls():
    yield "of 1e5", (1e5 * (1 + torch.rand(4, 16)),)
    yield "at the largest", (torch.tensor([65504.0, 65519.0, 65520.0, -65520.0]).repeat(4, 4),)
    yield "whole and odd", (2049.0 + 2 * torch.arange(64.0).reshape(4, 16),)
    yield "of 1e-6", (1e-6 * torch.rand(4, 16),)
    yield "of 1e-9", (1e-9 * torch.rand(4, 16),)
    yield "of 1e38", (torch.full((4, 16), 3.4e38),)
