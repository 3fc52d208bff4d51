"""A net into which other weights are loaded, in place, by assignment, and with extra state."""

import torch
from torch import nn

KIND = "interface"


class Extra(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.head = nn.Linear(8, 16), nn.Linear(16, 4)
        self.scale = 1.0

    def forward(self, x):
        return self.head(torch.relu(self.net(x))) * self.scale

    def get_extra_state(self):
        return {"scale": self.scale}

    def set_extra_state(self, state):
        self.scale = state["scale"]


def make():
    return Extra().eval()


def example():
    return (torch.randn(4, 8),)


def other_state(scale):
    other = Extra()
    other.scale = scale
    return other.state_dict()


def loaded(net):
    keys = net.load_state_dict(other_state(2.0))
    return net(torch.ones(4, 8)), keys.missing_keys, keys.unexpected_keys


def assigned(net):
    net.load_state_dict(other_state(3.0), assign=True)
    return net(torch.ones(4, 8)), net.scale


def in_part(net):
    keys = net.load_state_dict({"net.bias": torch.ones(16), "none": torch.ones(1)}, strict=False)
    return net(torch.ones(4, 8)), keys.missing_keys, keys.unexpected_keys


def saved(net):
    other = Extra().eval()
    other.load_state_dict(net.state_dict())
    return other(torch.ones(4, 8)), other.scale


def calls():
    yield "extra state", lambda net: net.state_dict()["_extra_state"]
    yield "loaded", loaded
    yield "assigned", assigned
    yield "in part", in_part
    yield "saved and loaded elsewhere", saved
    yield "refused: a missing weight", lambda net: net.load_state_dict({"net.bias": torch.ones(16)})
