"""A net that holds one module under two names and calls it twice; a change of it shows twice."""

import torch
from torch import nn

KIND = "process"


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.again = self.block
        self.head = nn.Linear(16, 32, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.again(self.block(self.embedding(ids))))


def make():
    return Tied().eval()


def example():
    return (torch.randint(0, 32, (2, 6)),)


def updated(net):
    net.again[0].bias.fill_(0.5)
    net.head.weight.mul_(0.5)
    return net(torch.arange(6)[None])


def untied(net):
    net.again = nn.Identity()
    net.head.weight = nn.Parameter(torch.ones(32, 16))
    return net(torch.arange(6)[None])


def calls():
    yield "fresh", (torch.randint(0, 32, (2, 6)),)
    yield "names", lambda net: [name for name, _ in net.named_parameters()]
    yield "names of the state", lambda net: list(net.state_dict())
    yield "updated", updated
    yield "untied", untied
    yield "refused: an id too large", (torch.tensor([[32]]),)
