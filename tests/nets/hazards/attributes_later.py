"""A net whose attributes are set, added and deleted by the caller: numbers, weights, modules."""

import torch
from torch import nn

KIND = "interface"


class Configured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.scale, self.options, self.extra = 1.0, {"shift": 0.0}, None
        self._limit = 2.0

    @property
    def limit(self):
        return self._limit

    @limit.setter
    def limit(self, value):
        self._limit = abs(value)

    def forward(self, x):
        y = self.net(x) * self.scale + self.options["shift"]
        y = y.clamp(-self.limit, self.limit)
        return y if self.extra is None else self.extra(y)


def make():
    return Configured().eval()


def example():
    return (torch.randn(4, 8),)


def value(net):
    return net(torch.linspace(-2, 2, 32).view(4, 8))


def number(net):
    net.scale = 3.0
    scaled = value(net)
    net.scale = 1.0
    return scaled, value(net), net.scale


def option(net):
    net.options["shift"] = 0.5
    shifted = value(net)
    net.options["shift"] = 0.0
    return shifted, value(net)


def setter(net):
    net.limit = -0.25
    limited = value(net), net.limit, net._limit
    net.limit = 2
    return limited, value(net), net.limit


def module(net):
    before = value(net)
    net.extra = nn.Linear(8, 2)
    return before, value(net), [name for name, _ in net.named_children()]


def deleted(net):
    del net.extra
    net.extra = None
    return value(net), hasattr(net, "none"), [name for name, _ in net.named_children()]


def weight(net):
    net.net.bias = nn.Parameter(torch.ones(8))
    net.register_buffer("table", torch.ones(3))
    net.register_parameter("gain", nn.Parameter(torch.ones(2)))
    return value(net), list(net.state_dict())


def method(net):
    net.net.forward = torch.tanh
    output = value(net)
    del net.net.forward
    return output, value(net)


def calls():
    yield "a number", number
    yield "an entry of a dict", option
    yield "a property", setter
    yield "a module", module
    yield "deleted", deleted
    yield "weights", weight
    yield "the forward of a part", method
    yield "refused: an unknown attribute", lambda net: net.none
