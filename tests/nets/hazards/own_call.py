"""A net with a `__call__` of its own, which prepares strings and lists before the usual call."""

import torch
from torch import nn

KIND = "interface"


class Texts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(128, 8), nn.Linear(8, 4)

    def __call__(self, text, scale=1.0):
        ids = torch.tensor([ord(letter) % 128 for letter in text]) if type(text) is str else text
        return super().__call__(ids) * scale

    def forward(self, ids):
        return self.head(self.table(ids).mean(0))


def make():
    return Texts().eval()


def example():
    return torch.randint(0, 128, (6,)), 2.0


def calls():
    ids = torch.randint(0, 128, (6,))
    yield "ids", (ids, 2.0)
    yield "another scale", (ids, 3.0)
    yield "a text", ("passed", 2.0)
    yield "the plain forward", lambda net: net.forward(ids)
    yield "refused: an empty list", ([],)
