"""A net that multiplies by tensors in a plain list, which the user scales in place."""

import torch
from torch import nn

KIND = "state"


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.matrices = [torch.randn(24, 24) / 5 for _ in range(3)]
        self.norm, self.out = nn.LayerNorm(24), nn.Linear(24, 4)

    def forward(self, x):
        for matrix in self.matrices:
            x = torch.tanh(self.norm(x) @ matrix.to(x.dtype))
        return self.out(x)


def make():
    return Listed().eval()


def example():
    return (torch.randn(3, 24),)


def change(net):
    net.matrices[1].mul_(-2)


def scaled(net):
    net.matrices[0].data.mul_(3)
    return net(torch.ones(3, 24))


def calls():
    yield "the second scaled", (torch.randn(3, 24),)
    yield "the first scaled", scaled
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 72).reshape(3, 24))
