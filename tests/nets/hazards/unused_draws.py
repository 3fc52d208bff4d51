"""A net that draws random numbers which hardly ever matter; torch's generator moves on."""

import torch
from torch import nn

KIND = "process"


class Rare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        torch.rand(3)
        rare = torch.rand(()) < 0.02
        return torch.where(rare, torch.zeros(()), self.net(x))


def make():
    return Rare().eval()


def example():
    return (torch.randn(4, 16),)


def many(net):
    torch.manual_seed(0)
    sums = [net(torch.ones(4, 16)).abs().sum() for _ in range(200)]
    return torch.stack(sums), torch.rand(2)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(2, 16),)
    yield "two hundred calls", many
