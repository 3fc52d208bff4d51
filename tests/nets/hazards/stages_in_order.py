"""Stages and factors that are run in the order of their dicts, which the user changes."""

import torch
from torch import nn

KIND = "state"


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(
            {"wide": nn.Linear(12, 12), "act": nn.ReLU(), "norm": nn.LayerNorm(12)}
        )
        self.steps = {"add": 2.0, "multiply": 3.0}

    def forward(self, x):
        for stage in self.stages.values():
            x = stage(x)
        for name, value in self.steps.items():
            x = x + value if name == "add" else x * value
        return x


def make():
    return Staged().eval()


def example():
    return (torch.randn(3, 12),)


def stages_turned(net):
    entries = net.stages._modules
    entries["act"] = entries.pop("act")
    return net(torch.linspace(-2, 2, 36).reshape(3, 12))


def steps_turned(net):
    net.steps["add"] = net.steps.pop("add")
    return net(torch.linspace(-2, 2, 36).reshape(3, 12))


def calls():
    yield "fresh", example()
    yield "factors in another order", steps_turned
    yield "stages in another order", stages_turned
