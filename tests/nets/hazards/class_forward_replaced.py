"""A net whose layers' class gets another forward after optimisation."""

import torch
from torch import nn

KIND = "state"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(24), nn.Linear(24, 24)

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.out = nn.Sequential(*(Layer() for _ in range(3))), nn.Linear(24, 4)

    def forward(self, x):
        return self.out(self.layers(x))


def make():
    return Stack().eval()


def example():
    return (torch.randn(3, 24),)


def change(net):
    Layer.forward = lambda layer, x: x - layer.inner(torch.relu(layer.norm(x)))


def of_the_net(net):
    Stack.forward = lambda stack, x: stack.out(stack.layers(x)).softmax(-1)
    return net(torch.ones(3, 24))


def calls():
    yield "another forward of the layers", (torch.randn(3, 24),)
    yield "another forward of the net", of_the_net
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 72).reshape(3, 24))
