"""Times in float64 seconds turned into phases and gaps: a float32 holds them to minutes alone."""

import torch
from torch import nn

KIND = "values"


class Times(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, t):
        day = (t / 86400 - torch.floor(t / 86400)).float() * (2 * torch.pi)
        gaps = torch.diff(t, dim=-1, prepend=t[:, :1]).float()
        return self.out(torch.cos(day)), gaps, (t > t.mean()).sum(-1), (t * 8).long() % 8


def make():
    return Times().eval()


def example():
    return (torch.arange(30, dtype=torch.float64).reshape(5, 6) * 64,)


def calls():
    steps = torch.arange(30, dtype=torch.float64).reshape(5, 6)
    yield "eighths", (steps / 8,)
    yield "today", (1_760_000_000.0 + steps,)
    yield "eighths of a second today", (1_760_000_000.0 + steps / 8,)
    yield "before 1970", (-1_000_000_000.0 + steps * 3600,)
