"""A forecaster like N-BEATS: blocks that explain the rest of a series by polynomials and waves."""

import torch
from torch import nn

KIND = "harmless"

PAST, FUTURE = 48, 12


class Block(nn.Module):
    def __init__(self, past, future) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(PAST, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU()),
        )
        self.theta = nn.Linear(128, len(past))
        self.register_buffer("past", past)
        self.register_buffer("future", future)

    def forward(self, x):
        theta = self.theta(self.layers(x))
        return theta @ self.past, theta @ self.future


def make_basis(kind):
    time = torch.arange(PAST + FUTURE) / (PAST + FUTURE)
    if kind == "trend":
        basis = torch.stack([time**power for power in range(4)])
    else:
        waves = [
            torch.stack([(6.2832 * n * time).cos(), (6.2832 * n * time).sin()]) for n in (1, 2, 4)
        ]
        basis = torch.cat(waves)
    return basis[:, :PAST], basis[:, PAST:]


class NBeats(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kinds = ("trend", "trend", "season", "season")
        self.blocks = nn.ModuleList(Block(*make_basis(kind)) for kind in kinds)

    def forward(self, series):
        level = series.abs().amax(1, keepdim=True).clamp(min=1e-6)
        rest, forecast = series / level, 0
        for block in self.blocks:
            past, future = block(rest)
            rest, forecast = rest - past, forecast + future
        return forecast * level


def make():
    return NBeats().eval()


def example():
    return (torch.randn(16, PAST).cumsum(1),)


def calls():
    yield "fresh", (torch.randn(16, PAST).cumsum(1),)
    yield "small", (1e-3 * torch.randn(16, PAST),)
    yield "large", (100 * torch.randn(16, PAST),)
    yield "a sine", (torch.sin(torch.arange(16 * PAST) / 3).view(16, PAST),)
    yield "zeros", (torch.zeros(16, PAST),)
