"""A net whose layers get hooks after optimisation, before and after their forward."""

import torch
from torch import nn

KIND = "state"


class Layered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.second = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32))
        self.out = nn.Linear(32, 4)

    def forward(self, x, scale=1.0):
        return self.out(self.second(self.first(x) * scale))


def make():
    return Layered().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.second.register_forward_hook(lambda module, args, output: output.flip(-1))


def before(net):
    net.first[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return net(torch.ones(3, 12))


def with_names(net):
    def doubled(module, args, kwargs):
        return args, {**kwargs, "scale": 2.0}

    handle = getattr(net, "original_net", net).register_forward_pre_hook(doubled, with_kwargs=True)
    try:
        return net(torch.ones(3, 12))
    finally:
        handle.remove()


def calls():
    yield "a hook after a layer", (torch.randn(3, 12),)
    yield "a hook before a layer", before
    yield "a hook that adds an argument by name", with_names
    yield "without that hook", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
