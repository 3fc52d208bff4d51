"""Linear layers in int8 with scales found in each call: of constants, zeros and outliers."""

import torch
from torch import nn

KIND = "values"


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(24, 16)
        self.register_buffer("steps", weight.abs().amax(1) / 127)
        self.register_buffer("weight", (weight / self.steps[:, None]).round().to(torch.int8))

    def forward(self, x):
        step = x.abs().amax(-1, keepdim=True) / 127
        whole = (x / step.clamp(min=1e-8)).round().clamp(-128, 127).to(torch.int8)
        product = whole.int() @ self.weight.int().t()
        return product.float() * step * self.steps, product, whole


def make():
    return Row().eval()


def example():
    return (torch.cat([torch.full((5, 1), 127.0), torch.randint(1, 127, (5, 15)).float()], -1),)


def calls():
    top = torch.full((5, 1), 127.0)
    yield "both signs", (torch.cat([top, torch.randint(-127, 127, (5, 15)).float()], -1),)
    yield "halves", (torch.cat([top, torch.randint(-99, 99, (5, 15)) + 0.5], -1),)
    yield "zeros", (torch.zeros(5, 16),)
    yield "constant", (torch.full((5, 16), -2.0),)
    yield "an outlier", (torch.cat([top * 2.0**20, torch.ones(5, 15)], -1),)
