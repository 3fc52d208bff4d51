"""A net with a traced submodule, which keeps the branch of its own trace, and a frozen one."""

import torch
from torch import nn

KIND = "process"


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 16)

    def forward(self, x):
        y = self.net(x)
        return torch.tanh(y) if x.shape[0] > 2 else y


class Whole(nn.Module):
    def __init__(self, *parts) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
        return self.head(x)


def make():
    traced = torch.jit.trace(Part().eval(), torch.ones(4, 16))
    return Whole(traced, torch.jit.freeze(torch.jit.script(Part().eval()))).eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "a small batch", (torch.randn(2, 16),)
    yield "a large batch", (torch.randn(9, 16),)
    yield "columns", (torch.randn(16, 4).T,)
