"""A state-space layer like Mamba's: a gated scan over 24 steps whose rates depend on the input."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class SelectiveScan(nn.Module):
    def __init__(self, width=32, states=8) -> None:
        super().__init__()
        self.states = states
        self.inside = nn.Linear(width, 2 * width, bias=False)
        self.conv = nn.Conv1d(width, width, 4, groups=width, padding=3)
        self.select = nn.Linear(width, 4 + 2 * states, bias=False)
        self.rate = nn.Linear(4, width)
        self.log_a = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(width, 1))
        self.skip, self.out = nn.Parameter(torch.ones(width)), nn.Linear(width, width, bias=False)

    def forward(self, x):
        length = x.shape[1]
        x, gate = self.inside(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        rate, b, c = self.select(x).split([4, self.states, self.states], -1)
        rate = F.softplus(self.rate(rate)).unsqueeze(-1)
        decay = torch.exp(-rate * self.log_a.exp())
        driven = rate * b.unsqueeze(2) * x.unsqueeze(-1)
        state, outputs = torch.zeros_like(driven[:, 0]), []
        for step in range(length):
            state = decay[:, step] * state + driven[:, step]
            outputs.append((state * c[:, step].unsqueeze(1)).sum(-1))
        x = torch.stack(outputs, 1) + self.skip * x
        return self.out(x * F.silu(gate))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.scan, self.head = nn.LayerNorm(32), SelectiveScan(), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(x + self.scan(self.norm(x)))


def make():
    return Net().eval()


def example():
    return (torch.randn(1, 24, 32),)


def calls():
    yield "fresh", (torch.randn(1, 24, 32),)
    yield "small", (0.01 * torch.randn(1, 24, 32),)
    yield "large", (100 * torch.randn(1, 24, 32),)
    yield "zeros", (torch.zeros(1, 24, 32),)
