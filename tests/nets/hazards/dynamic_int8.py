"""A net of torch.ao with linear layers in int8, quantised in each call."""

import torch
from torch import nn

KIND = "values"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.body(x), x.sum(-1)


def make():
    return torch.ao.quantization.quantize_dynamic(Net().eval(), {nn.Linear}, dtype=torch.qint8)


def example():
    return (torch.rand(6, 16),)


def calls():
    yield "fresh", (torch.randn(6, 16),)
    yield "zeros", (torch.zeros(6, 16),)
    yield "constant", (torch.full((6, 16), -3.0),)
    yield "large", (1e4 * torch.randn(6, 16),)
    x = torch.randn(6, 16)
    x[0, 0] = 1e6
    yield "an outlier", (x,)
