"""A net with a temperature and an eps of its norm that the user changes after optimisation."""

import torch
from torch import nn

KIND = "state"


class Tempered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(12, 48), nn.LayerNorm(48)
        self.body = nn.Sequential(nn.GELU(), nn.Linear(48, 48), nn.GELU())
        self.out, self.temperature = nn.Linear(48, 6), 1.0

    def forward(self, x):
        logits = self.out(self.body(self.norm(self.stem(x))))
        return (logits / self.temperature).softmax(-1)


def make():
    return Tempered().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.temperature = 0.1


def other_eps(net):
    net.norm.eps = 10.0
    return net(torch.ones(3, 12))


def put_back(net):
    net.norm.eps, net.temperature = 1e-5, 1.0
    return net(torch.ones(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "another eps", other_eps
    yield "as it was", put_back
    yield "and fresh", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
