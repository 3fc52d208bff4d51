"""A net with a layer whose forward the user wraps on the instance, as offloading tools do."""

import torch
from torch import nn

KIND = "state"


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.second = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32))
        self.out = nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.second(self.first(x)))


def make():
    return Stack().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    usual = net.out.forward
    net.out.forward = lambda x: 2 * usual(x) - 1


def of_the_net(net):
    original = getattr(net, "original_net", net)
    usual = original.forward
    original.forward = lambda x: usual(x).softmax(-1)
    return net(torch.ones(3, 12))


def put_back(net):
    del getattr(net, "original_net", net).forward, net.out.forward
    return net(torch.ones(3, 12))


def calls():
    yield "a layer wrapped", (torch.randn(3, 12),)
    yield "the net wrapped", of_the_net
    yield "as it was", put_back
