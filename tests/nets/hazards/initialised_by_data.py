"""An activation norm that takes its bias and scale from the user's first batch, not before."""

import torch
from torch import nn

KIND = "state"


class ActNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias, self.log_scale = nn.Parameter(torch.zeros(16)), nn.Parameter(torch.zeros(16))
        self.register_buffer("is_ready", torch.tensor(False))

    def forward(self, x):
        if not self.is_ready:
            with torch.no_grad():
                self.bias.copy_(-x.mean(0))
                self.log_scale.copy_(-torch.log(x.std(0) + 1e-2))
                self.is_ready.fill_(True)
        return (x + self.bias) * self.log_scale.exp()


class Flow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 16), ActNorm(), nn.Linear(16, 4)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.stem(x))))


def make():
    return Flow().eval()


def example():
    return (torch.randn(6, 12),)


def state(net):
    return bool(net.norm.is_ready)


def at(scale):
    return lambda net: net(scale * torch.linspace(-1, 1, 72).reshape(6, 12).sin())


def anew(net):
    net.norm.is_ready.fill_(False)
    return at(9.0)(net)


def calls():
    yield "later batch", at(5.0)
    yield "initialised anew", anew
    yield "after that", at(1.0)
