"""Arguments in dicts, lists and named tuples: order, length, extra names and types may differ."""

from collections import OrderedDict, namedtuple

import torch
from torch import nn

KIND = "form"

Pair = namedtuple("Pair", ["left", "right"])


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, batch):
        total = self.net(batch["pair"][0]) - batch["pair"][1]
        for number, level in enumerate(batch["levels"]):
            total = total + (number + 1) * level
        names = list(batch)
        return total * len(names) + names.index("pair")


def make():
    return Nested().eval()


def example():
    a, b, c, d = torch.randn(4, 4, 8)
    return ({"pair": (a, b), "levels": [c, d]},)


def calls():
    a, b, c, d = torch.randn(4, 4, 8)
    yield "fresh", ({"pair": (b, a), "levels": [d, c]},)
    yield "names in another order", ({"levels": [c, d], "pair": (a, b)},)
    yield "another name", ({"pair": (a, b), "levels": [c, d], "seed": 3},)
    yield "one level", ({"pair": (a, b), "levels": [c]},)
    yield "no level", ({"pair": (a, b), "levels": []},)
    yield "a tuple of levels", ({"pair": (a, b), "levels": (c, d)},)
    yield "a named pair", ({"pair": Pair(a, b), "levels": [c, d]},)
    yield "an ordered dict", (OrderedDict(pair=(a, b), levels=[c, d]),)
    yield "a tensor of pairs", ({"pair": torch.stack([a, b]), "levels": [c, d]},)
    yield "one tensor in all places", ({"pair": (a, a), "levels": [a, a]},)
    yield "refused: no pair", ({"levels": [c, d]},)
