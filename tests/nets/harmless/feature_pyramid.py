"""A feature pyramid: three levels of a backbone, merged from the smallest up, as a list."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.down = nn.ModuleList(
            nn.Conv2d(w, v, 3, 2, 1) for w, v in ((16, 24), (24, 32), (32, 48))
        )
        self.lateral = nn.ModuleList(nn.Conv2d(w, 24, 1) for w in (24, 32, 48))
        self.smooth = nn.ModuleList(nn.Conv2d(24, 24, 3, padding=1) for _ in range(3))

    def forward(self, x):
        x, levels = F.relu(self.stem(x)), []
        for layer in self.down:
            x = F.relu(layer(x))
            levels.append(x)
        merged = [self.lateral[2](levels[2])]
        for number in (1, 0):
            own = self.lateral[number](levels[number])
            merged.insert(0, own + F.interpolate(merged[0], size=own.shape[-2:], mode="nearest"))
        return [smooth(level) for smooth, level in zip(self.smooth, merged, strict=True)]


def make():
    return Pyramid().eval()


def example():
    return (torch.randn(1, 3, 72, 80),)


def calls():
    yield "fresh", (torch.randn(1, 3, 72, 80),)
    yield "small", (1e-3 * torch.randn(1, 3, 72, 80),)
    yield "large", (100 * torch.randn(1, 3, 72, 80),)
    yield "black", (torch.zeros(1, 3, 72, 80),)
