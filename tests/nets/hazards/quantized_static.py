"""A convnet of torch.ao in 8 bits with calibrated scales; values beyond them are cut off."""

import warnings

import torch
from torch import nn
from torch.ao import quantization

KIND = "process"


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = self.relu(self.conv(self.into(x)))
        return self.out(self.head(y.mean((2, 3))))


def make():
    net = Convnet().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.qconfig = quantization.get_default_qconfig("x86")
        fused = quantization.fuse_modules(net, [["conv", "relu"]])
        prepared = quantization.prepare(fused)
        prepared(torch.randn(16, 3, 8, 8))
        return quantization.convert(prepared)


def example():
    return (torch.randn(2, 3, 8, 8),)


def calls():
    yield "fresh", (torch.randn(2, 3, 8, 8),)
    yield "beyond the scales", (10 * torch.randn(2, 3, 8, 8),)
    yield "zeros", (torch.zeros(2, 3, 8, 8),)
    yield "another size", (torch.randn(1, 3, 12, 4),)
