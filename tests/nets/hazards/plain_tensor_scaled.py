"""A net with a tensor in a plain attribute, not registered, which the user writes in place."""

import torch
from torch import nn

KIND = "state"


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.basis = torch.linspace(0, 3, 288).reshape(12, 24).sin()
        self.body = nn.Sequential(
            nn.LayerNorm(24), nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4)
        )

    def forward(self, x):
        return self.body(x @ self.basis.to(x.dtype))


def make():
    return Plain().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.basis[3] = 5.0


def by_numpy(net):
    net.basis.numpy()[:6] *= -1
    return net(torch.ones(3, 12))


def replaced(net):
    net.basis = torch.ones(12, 24).tril()
    return net(torch.ones(3, 12))


def calls():
    yield "a row written", (torch.randn(3, 12),)
    yield "written by numpy", by_numpy
    yield "replaced", replaced
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
