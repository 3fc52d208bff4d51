"""A net that keeps its class weights as a numpy array, which the user changes in place."""

import numpy as np
import torch
from torch import nn

KIND = "state"


class Arrays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)
        self.priors = np.array([0.1, 0.2, 0.3, 0.4])

    def forward(self, x):
        logits = self.out(self.body(x))
        return logits + torch.from_numpy(np.log(self.priors)).to(logits.dtype)


def make():
    return Arrays().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.priors[:] = [0.7, 0.1, 0.1, 0.1]


def replaced(net):
    net.priors = np.array([0.25, 0.25, 0.25, 0.25])
    return net(torch.ones(3, 12))


def calls():
    yield "other priors", (torch.randn(3, 12),)
    yield "replaced", replaced
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
