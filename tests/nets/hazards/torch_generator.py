"""A net with a torch.Generator of its own: its noise goes on from call to call, unlike torch's."""

import torch
from torch import nn

KIND = "process"


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.generator = torch.Generator().manual_seed(4)

    def forward(self, x):
        return self.net(x) + torch.randn(8, generator=self.generator)


def make():
    return Noisy().eval()


def state(net):
    return net.generator.get_state().tolist()


def example():
    return (torch.randn(4, 16),)


def reset(net):
    first = net(torch.ones(4, 16))
    net.generator.manual_seed(4)
    return first, net(torch.ones(4, 16)), torch.rand(2)


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x,)
    yield "the same again", (x,)
    yield "reset", reset
