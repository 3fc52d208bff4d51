"""A language model with tied weights, changed by either name and untied after optimisation."""

import torch
from torch import nn

KIND = "state"


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.out = nn.Linear(16, 20, bias=False)
        self.out.weight = self.words.weight

    def forward(self, ids):
        hidden = self.words(ids)
        return self.out(self.norm(hidden + self.body(hidden)))


def make():
    return Tied().eval()


def example():
    return (torch.randint(0, 20, (2, 6)),)


def both(net):
    net.out.weight[3:9] *= 2
    return net(torch.arange(12).reshape(2, 6))


def untied(net):
    net.out.weight = nn.Parameter(net.words.weight.detach().flip(0))
    return net(torch.arange(12).reshape(2, 6))


def one(net):
    net.words.weight.mul_(-1)
    return net(torch.arange(12).reshape(2, 6))


def tied_again(net):
    net.words.weight = net.out.weight
    return net(torch.arange(12).reshape(2, 6))


def calls():
    yield "fresh", (torch.randint(0, 20, (2, 6)),)
    yield "changed by the other name", both
    yield "untied", untied
    yield "one of them changed", one
    yield "tied again", tied_again
