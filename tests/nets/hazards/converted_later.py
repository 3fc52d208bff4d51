"""A net that the user converts after optimisation: to float64, to bfloat16 and back, in memory."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.out = nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4))

    def forward(self, x):
        return self.out(self.stem(x))


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 3, 8, 8),)


def point(dtype=torch.float32):
    return torch.linspace(-1, 1, 384, dtype=dtype).reshape(2, 3, 8, 8).sin()


def channels_last(net):
    net.to(memory_format=torch.channels_last)
    return net(point()), net(point().to(memory_format=torch.channels_last))


def float64(net):
    net.double()
    returned = net(point(torch.float64))
    net.float()
    return returned, net(point())


def coarser(net):
    net.to(torch.bfloat16)
    returned = net(point(torch.bfloat16))
    net.to(torch.float32)
    return returned, net(point())


def one_part(net):
    net.stem.double()
    try:
        return net.stem(point(torch.float64))
    finally:
        net.stem.float()


def calls():
    yield "fresh", (torch.randn(2, 3, 8, 8),)
    for use in (channels_last, float64, coarser, one_part):
        yield use.__name__, use
    yield "afterwards", lambda net: net(point())
