"""A net that weighs its heads by numbers in a dict, which the user changes in place."""

import torch
from torch import nn

KIND = "state"


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48))
        self.heads = nn.ModuleDict({name: nn.Linear(48, 4) for name in ("near", "far", "deep")})
        self.shares = {"near": 1.0, "far": 0.5}

    def forward(self, x):
        hidden = self.body(x)
        return sum(share * self.heads[name](hidden) for name, share in self.shares.items())


def make():
    return Weighted().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.shares["far"] = -2.0


def one_more(net):
    net.shares["deep"] = 1.0
    return net(torch.ones(3, 12))


def one_less(net):
    del net.shares["near"]
    return net(torch.ones(3, 12))


def calls():
    yield "another share", (torch.randn(3, 12),)
    yield "one more", one_more
    yield "one less", one_less
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
