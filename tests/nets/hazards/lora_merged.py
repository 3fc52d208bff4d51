"""A linear layer with adapters, of which the user changes scales, merges one and switches."""

import torch
from torch import nn

KIND = "state"


class Adapted(nn.Module):
    def __init__(self, num_in, num_out) -> None:
        super().__init__()
        self.base, self.merged, self.active = nn.Linear(num_in, num_out), False, ["first"]
        self.scales = {"first": 1.0, "second": 0.5}
        self.down = nn.ModuleDict({name: nn.Linear(num_in, 2, bias=False) for name in self.scales})
        self.up = nn.ModuleDict({name: nn.Linear(2, num_out, bias=False) for name in self.scales})

    def merge(self):
        for name in self.active:
            delta = self.up[name].weight @ self.down[name].weight
            self.base.weight.data += self.scales[name] * delta
        self.merged = True

    def forward(self, x):
        out = self.base(x)
        if not self.merged:
            for name in self.active:
                out = out + self.scales[name] * self.up[name](self.down[name](x))
        return out


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = Adapted(12, 32), nn.LayerNorm(32), Adapted(32, 4)

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def switched(net):
    net.first.active[:] = ["second"]
    return net(torch.ones(3, 12))


def scaled(net):
    net.second.scales["first"] = 5.0
    return net(torch.ones(3, 12))


def merged(net):
    net.first.merge()
    return net(torch.ones(3, 12))


def fresh(net):
    return net(torch.linspace(-2, 2, 36).reshape(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "another scale", scaled
    yield "another adapter", switched
    yield "merged", merged
    yield "fresh again", fresh
