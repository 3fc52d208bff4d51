"""A net whose parts are listed and got by name; names, order and identity are the net's."""

import torch
from torch import nn

KIND = "interface"


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x):
        return self.head(self.trunk(x)) * self.scale


def make():
    return Parts().eval()


def example():
    return (torch.randn(4, 8),)


def flags(net):
    net.trunk.requires_grad_(False)
    return [(name, weight.requires_grad) for name, weight in net.named_parameters()]


def calls():
    yield "modules", lambda net: [(name, type(m).__name__) for name, m in net.named_modules()][1:]
    yield "children", lambda net: [(name, type(m).__name__) for name, m in net.named_children()]
    yield "parameters", lambda net: [name for name, _ in net.named_parameters()]
    yield "buffers", lambda net: [name for name, _ in net.named_buffers()]
    yield "the state", lambda net: net.state_dict()
    yield "the state with a prefix", lambda net: list(net.state_dict(prefix="net."))
    yield "by name", lambda net: net.get_submodule("trunk.0").weight is net.trunk[0].weight
    yield "a weight by name", lambda net: net.get_parameter("scale") is net.scale
    yield "the net among its modules", lambda net: next(iter(net.modules())) is net
    yield "counts", lambda net: sum(weight.numel() for weight in net.parameters())
    yield "names of attributes", lambda net: {"trunk", "scale", "seen"} <= set(dir(net))
    yield "flags", flags
    yield "refused: an unknown name", lambda net: net.get_submodule("trunk.9")
