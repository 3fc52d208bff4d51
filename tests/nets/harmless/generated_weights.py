"""A hypernetwork: a description of each task gives the weights of its own small MLP."""

import torch
from torch import nn

KIND = "harmless"


class HyperNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.first = nn.Linear(64, 8 * 40 + 40)
        self.second = nn.Linear(64, 40 * 4 + 4)

    def forward(self, x, task):
        code = self.embed(task)
        first, second = self.first(code), self.second(code)
        weight, bias = first[:, :320].view(-1, 8, 40), first[:, 320:].unsqueeze(1)
        hidden = torch.tanh(torch.baddbmm(bias, x, weight))
        weight, bias = second[:, :160].view(-1, 40, 4), second[:, 160:].unsqueeze(1)
        return torch.baddbmm(bias, hidden, weight)


def make():
    return HyperNet().eval()


def example():
    return torch.randn(16, 160, 8), torch.randn(16, 10)


def calls():
    yield "fresh", (torch.randn(16, 160, 8), torch.randn(16, 10))
    yield "small", (1e-3 * torch.randn(16, 160, 8), torch.randn(16, 10))
    yield "large", (100 * torch.randn(16, 160, 8), 100 * torch.randn(16, 10))
    yield "no task", (torch.randn(16, 160, 8), torch.zeros(16, 10))
