"""A hypernetwork: a description of each task gives the weights of its own small MLP."""

import torch
from torch import nn

KIND = "harmless"


class HyperNet(nn.Module):
    def __init__(self, widths=(8, 16, 16, 16, 4)) -> None:
        super().__init__()
        self.widths = widths
        self.embed = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.heads = nn.ModuleList(
            nn.Linear(48, (a + 1) * b) for a, b in zip(widths, widths[1:], strict=False)
        )

    def forward(self, x, task):
        code = self.embed(task)
        for number, head in enumerate(self.heads):
            rows, columns = self.widths[number : number + 2]
            weight, bias = head(code).split([rows * columns, columns], 1)
            x = torch.baddbmm(bias.unsqueeze(1), x, weight.view(-1, rows, columns))
            if number + 1 < len(self.heads):
                x = torch.tanh(x)
        return x


def make():
    return HyperNet().eval()


def example():
    return torch.randn(4, 20, 8), torch.randn(4, 10)


def calls():
    yield "fresh", (torch.randn(4, 20, 8), torch.randn(4, 10))
    yield "small", (1e-3 * torch.randn(4, 20, 8), torch.randn(4, 10))
    yield "large", (10 * torch.randn(4, 20, 8), 10 * torch.randn(4, 10))
    yield "no task", (torch.randn(4, 20, 8), torch.zeros(4, 10))
