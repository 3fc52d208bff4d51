"""A net with a scripted submodule that branches on its input, as loaded from a deployed file."""

import io

import torch
from torch import nn

KIND = "process"


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 32)

    def forward(self, x):
        y = self.net(x)
        if bool(x.sum() > 0):
            y = torch.relu(y)
        return y


class Whole(nn.Module):
    def __init__(self, part) -> None:
        super().__init__()
        self.part, self.head = part, nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.part(x))


def make():
    part = torch.jit.script(Part())
    file = io.BytesIO()
    torch.jit.save(part, file)
    file.seek(0)
    return Whole(torch.jit.load(file)).eval()


def example():
    return (torch.rand(4, 16),)


def calls():
    yield "fresh", (torch.rand(4, 16),)
    yield "the other branch", (-torch.rand(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "refused: fewer columns", (torch.randn(4, 8),)
