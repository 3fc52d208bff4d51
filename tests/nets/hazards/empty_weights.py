"""A net with weights of no elements: a layer of no columns adds nothing, one of no rows is bias."""

import warnings

import torch
from torch import nn

KIND = "process"


class Empty(nn.Module):
    def __init__(self, features=0) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.extra, self.back = nn.Linear(16, features), nn.Linear(features, 8)
            self.net = nn.Linear(16, 8)
        nn.init.normal_(self.back.bias)
        self.register_buffer("nothing", torch.empty(0, 16))

    def forward(self, x):
        extra = self.extra(x)
        rows = torch.cat([x, self.nothing])
        return self.net(rows) + self.back(extra), extra, self.nothing.sum(0)


def make():
    return Empty().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(2, 16),)
    yield "no batch", (torch.randn(0, 16),)
    yield "the state", lambda net: [list(value.shape) for value in net.state_dict().values()]
