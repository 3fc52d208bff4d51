"""A net that returns an ordered dict whose order depends on an argument; its keys are numbers."""

from collections import OrderedDict, defaultdict

import torch
from torch import nn

KIND = "form"


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.levels = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, is_coarse_first=False):
        levels = {}
        for number, level in enumerate(self.levels):
            x = torch.relu(level(x))
            levels[number] = x
        names = reversed(levels) if is_coarse_first else levels
        sums = defaultdict(list)
        sums["all"].append(x.sum())
        return OrderedDict((name, levels[name]) for name in names), sums


def make():
    return Pyramid().eval()


def example():
    return (torch.randn(4, 8),)


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "coarse first", (torch.randn(4, 8), True)
    yield "a key that is missing", lambda net: net(torch.ones(4, 8))[1]["none"]
    yield "the first level", lambda net: net(torch.ones(4, 8))[0].popitem(last=False)
    yield "refused: a level too many", lambda net: net(torch.ones(4, 8))[0][3]
