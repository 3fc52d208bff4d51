"""A net called under autocast: its outputs are bfloat16 there, float32 after it."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 3)

    def forward(self, x):
        if torch.is_autocast_enabled("cpu"):
            x = 0.5 * x
        return self.out(torch.tanh(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 12),)


def point():
    return torch.linspace(-1, 1, 24).reshape(2, 12)


def autocast(net):
    before = net(point())
    with torch.autocast("cpu", torch.bfloat16):
        within = net(point())
        with torch.autocast("cpu", enabled=False):
            inner = net(point())
    return before, within, inner, net(point())


def float16(net):
    with torch.autocast("cpu", torch.float16):
        return net(point())


def calls():
    yield "without it", (torch.randn(2, 12),)
    yield "before, within and after", autocast
    yield "in float16", float16
    yield "once more", autocast
