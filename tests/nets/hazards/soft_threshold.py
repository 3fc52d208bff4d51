"""Steps at thresholds: values exactly on them go the way that `>` and `>=` say."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.limits = nn.Parameter(torch.tensor([0.0, 0.25, 0.5, 1.0]))

    def forward(self, x):
        level = (x.unsqueeze(-1) >= self.limits).sum(-1)
        above = (x.unsqueeze(-1) > self.limits).sum(-1)
        spread = F.hardtanh(x * 4 - 2)
        return (
            level,
            above,
            spread,
            F.threshold(x, 0.5, -1.0),
            F.hardshrink(x, 0.5),
            x.sign() * (x > 0),
        )


def make():
    return Steps().eval()


def example():
    return (torch.rand(6, 9) * 0.1 + 0.3,)


def calls():
    yield "on the thresholds", ((torch.arange(54) % 5 - 1).reshape(6, 9) / 4,)
    yield "wide", (torch.randn(6, 9),)
    yield "just below", (torch.nextafter(torch.full((6, 9), 0.5), torch.zeros(6, 9)),)
    yield "denormal", (torch.tensor([1e-42, -1e-42, 0.0]).repeat(6, 3),)
    yield "NaN", (torch.full((6, 9), float("nan")),)
