"""A net with weights that are transposed, expanded and every second row of a table."""

import torch
from torch import nn

KIND = "process"


class Strided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 6)
        self.net.weight = nn.Parameter(torch.randn(8, 6).t(), requires_grad=False)
        self.register_buffer("scale", torch.full((1,), 1.5).expand(6))
        self.register_buffer("rows", torch.randn(12, 6)[::3])
        self.register_buffer("window", torch.randn(9).unfold(0, 6, 1))

    def forward(self, x):
        y = self.net(x) * self.scale
        return torch.cat([y, self.rows, self.window]), self.rows


def make():
    return Strided().eval()


def state(net):
    return [list(value.stride()) for value in net.state_dict().values()]


def example():
    return (torch.randn(4, 8),)


def updated(net):
    before = net(torch.ones(4, 8))[0]
    net.scale[:1].fill_(-1.0)  # all of them, as they are one number
    net.rows.mul_(2)
    return before, net(torch.ones(4, 8)), net.scale


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "updated", updated
    yield "another batch", (torch.randn(2, 8),)
    yield "strides", lambda net: [list(value.stride()) for value in net(torch.ones(4, 8))]
