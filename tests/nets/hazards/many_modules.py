"""A net of 200 small modules, each with a weight and a switch that counts; all are watched."""

import torch
from torch import nn

KIND = "process"


class Step(nn.Module):
    def __init__(self, size) -> None:
        super().__init__()
        self.scale = nn.Parameter(1 + 0.01 * torch.randn(size), requires_grad=False)
        self.is_on = True

    def forward(self, x):
        return torch.tanh(x * self.scale) if self.is_on else x


def make():
    return nn.Sequential(*(Step(16) for _ in range(200))).eval()


def example():
    return (torch.randn(4, 16),)


def switched(net):
    net.get_submodule("137").is_on = False
    without = net(torch.ones(4, 16))
    net.get_submodule("137").is_on = True
    return without, net(torch.ones(4, 16))


def scaled(net):
    net.get_submodule("199").scale.fill_(2.0)
    return net(torch.ones(4, 16))


def hooked(net):
    hook = net.get_submodule("63").register_forward_hook(lambda module, given, y: y * 0.5)
    try:
        return net(torch.ones(4, 16))
    finally:
        hook.remove()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "large", (100 * torch.randn(4, 16),)
    yield "one that is switched off", switched
    yield "one weight that changes", scaled
    yield "one with a hook", hooked
    yield "as it was, but for the weight", lambda net: net(torch.ones(4, 16))
