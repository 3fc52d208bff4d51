"""A net that renormalises a weight where its norm is above a limit: weights grow after a while."""

import torch
from torch import nn

KIND = "control flow"


class Limited(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 16) / 8)
        self.body = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, x):
        weight, norm = self.weight, float(self.weight.norm())
        if norm > 5:
            weight = weight * (5 / norm)
        return self.body(x @ weight.mT + x.mean(-1, keepdim=True))


def make():
    return Limited().eval()


def example():
    return (torch.randn(3, 16),)


def calls():
    for factor in (1.0, 1.1, 4.0, 0.01):

        def use(net, factor=factor):
            net.weight.mul_(factor)
            return net(torch.linspace(-1, 1, 48).reshape(3, 16))

        yield f"the weight times {factor}", use
