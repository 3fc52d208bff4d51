"""A net with operators of its own: it is compared, added, entered, cut and called by index."""

import torch
from torch import nn

KIND = "interface"


class Operators(nn.Module):
    def __init__(self, depth=2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))
        self.entered = 0

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, number):
        return self.layers[number]

    def __contains__(self, size):
        return any(layer.out_features == size for layer in self.layers)

    def __bool__(self):
        return False

    def __matmul__(self, x):
        return self(x) * 2

    def __or__(self, other):
        return lambda x: other(self(x))

    def __lt__(self, other):
        return len(self) < other

    def __int__(self):
        return len(self.layers)

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, *error):
        self.entered -= 1


def make():
    return Operators().eval()


def example():
    return (torch.randn(4, 8),)


def entered(net):
    with net as inside:
        return inside(torch.ones(4, 8)), net.entered


def calls():
    x = torch.randn(4, 8)
    yield "length and truth", lambda net: (len(net), bool(net), int(net))
    yield "an item", lambda net: net[1](x)
    yield "whether it holds a size", lambda net: (8 in net, 9 in net)
    yield "a product", lambda net: net @ x
    yield "a pipe", lambda net: (net | torch.relu)(x)
    yield "an order", lambda net: (net < 3, net < 2)
    yield "entered", entered
