"""A net that widens its clipping range by the inputs it sees: later calls clip at later ranges."""

import torch
from torch import nn

KIND = "state"


class Observer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.tensor(0.0))
        self.register_buffer("high", torch.tensor(0.0))

    def forward(self, x):
        self.low = torch.minimum(self.low, 0.5 * x.amin())
        self.high = torch.maximum(self.high, 0.5 * x.amax())
        return torch.maximum(torch.minimum(x, self.high), self.low)


class Observed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.stem = Observer(), nn.Linear(12, 32)
        self.second, self.out = Observer(), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.second(torch.tanh(self.stem(self.first(x)))))


def make():
    return Observed().eval()


def example():
    return (torch.randn(3, 12),)


def state(net):
    return float(net.first.low), float(net.first.high)


def seen(scale):
    def use(net):
        returned = net(scale * torch.linspace(-1, 1, 36).reshape(3, 12))
        return returned, net.first.high.clone(), net.second.low.clone()

    return use


def calls():
    for scale in (1.0, 5.0, 0.5, 20.0):
        yield f"inputs of scale {scale}", seen(scale)
