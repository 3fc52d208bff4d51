"""A net whose way of pooling is a string and its activation a function: the user changes both."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.stem = nn.Embedding(40, 24), nn.Linear(24, 48)
        self.norm, self.out = nn.LayerNorm(48), nn.Linear(48, 5)
        self.pooling, self.activation = "mean", F.gelu

    def forward(self, ids):
        hidden = self.norm(self.activation(self.stem(self.words(ids))))
        pooled = hidden.amax(1) if self.pooling == "max" else hidden.mean(1)
        return self.out(pooled)


def make():
    return Pooled().eval()


def example():
    return (torch.randint(0, 40, (3, 9)),)


def change(net):
    net.pooling = "max"


def other_activation(net):
    net.activation = torch.tanh
    return net(torch.arange(27).reshape(3, 9))


def calls():
    yield "pooled by max", (torch.randint(0, 40, (3, 9)),)
    yield "another activation", other_activation
    yield "fresh", lambda net: net(torch.arange(13, 40).reshape(3, 9))
