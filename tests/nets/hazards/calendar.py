"""Hours, weekdays and days from times in milliseconds, also of times before 1970."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Calendar(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.hour, self.weekday = nn.Embedding(24, 8), nn.Embedding(7, 8)

    def forward(self, times):
        seconds = torch.div(times, 1000, rounding_mode="floor")
        hours = seconds // 3600 % 24
        weekdays = (seconds // 86400 + 4) % 7
        ages = (times.max() - times) / 86_400_000
        return (
            self.tower(self.hour(hours) + self.weekday(weekdays)),
            hours,
            weekdays,
            torch.log1p(ages),
        )


def make():
    return Calendar().eval()


def example():
    return (torch.randint(0, 10_000_000, (6, 8)),)


def calls():
    yield "today", (1_760_000_000_000 + torch.randint(0, 10**10, (6, 8)),)
    yield "before 1970", (-torch.randint(1, 10**12, (6, 8)),)
    yield "at midnight", (86_400_000 * torch.randint(15_000, 20_000, (6, 8)),)
    yield "a second before midnight", (86_400_000 * torch.randint(15_000, 20_000, (6, 8)) - 1,)
    yield "microseconds by mistake", (1_760_000_000_000_000 + torch.randint(0, 10**10, (6, 8)),)
