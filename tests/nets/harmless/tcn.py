"""A temporal convnet: causal dilated convolutions with weight norm, in residual blocks."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width_in, width_out, dilation) -> None:
        super().__init__()
        self.padding = 2 * dilation
        self.conv1 = weight_norm(nn.Conv1d(width_in, width_out, 3, dilation=dilation))
        self.conv2 = weight_norm(nn.Conv1d(width_out, width_out, 3, dilation=dilation))
        self.skip = nn.Conv1d(width_in, width_out, 1) if width_in != width_out else None

    def forward(self, x):
        out = F.relu(self.conv1(F.pad(x, (self.padding, 0))))
        out = F.relu(self.conv2(F.pad(out, (self.padding, 0))))
        return F.relu(out + (x if self.skip is None else self.skip(x)))


class Tcn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(4, 24, 1), Block(24, 24, 2), Block(24, 24, 4))
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.blocks(x.transpose(1, 2))[:, :, -1])


def make():
    return Tcn().eval()


def example():
    return (torch.randn(4, 64, 4),)


def calls():
    yield "fresh", (torch.randn(4, 64, 4),)
    yield "small", (1e-3 * torch.randn(4, 64, 4),)
    yield "large", (100 * torch.randn(4, 64, 4),)
    yield "zeros", (torch.zeros(4, 64, 4),)
