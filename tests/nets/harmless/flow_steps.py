"""Steps of a normalising flow: halves that scale and move each other, and the sum of log scales."""

import torch
from torch import nn

KIND = "harmless"


class Coupling(nn.Module):
    def __init__(self, width, order) -> None:
        super().__init__()
        self.register_buffer("order", order)
        half = width // 2
        self.net = nn.Sequential(
            nn.Linear(half, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, width)
        )

    def forward(self, x, log_det):
        x = x[:, self.order]
        fixed, moved = x.chunk(2, 1)
        log_scale, shift = self.net(fixed).chunk(2, 1)
        log_scale = 0.8 * torch.tanh(log_scale)
        moved = moved * log_scale.exp() + shift
        return torch.cat([fixed, moved], 1), log_det + log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, width=12) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Coupling(width, torch.randperm(width)) for _ in range(6))

    def forward(self, x):
        log_det = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        for step in self.steps:
            x, log_det = step(x, log_det)
        log_chance = -0.5 * (x.square() + 1.8378770664).sum(1)
        return x, log_chance + log_det


def make():
    return Flow().eval()


def example():
    return (torch.randn(64, 12),)


def calls():
    yield "fresh", (torch.randn(64, 12),)
    yield "small", (1e-3 * torch.randn(64, 12),)
    yield "large", (100 * torch.randn(64, 12),)
    yield "zeros", (torch.zeros(64, 12),)
