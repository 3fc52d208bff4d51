"""A net of spectra that asserts that none is negative: a negative one must raise in each call."""

import torch
from torch import nn

KIND = "control flow"


class Spectra(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.out = nn.Linear(64, 3)

    def forward(self, power):
        assert bool((power >= 0).all()), "power is never negative"
        return self.out(self.body(torch.log1p(power.abs())))


def make():
    return Spectra().eval()


def example():
    return (torch.rand(2, 32),)


def calls():
    yield "positive", (torch.rand(2, 32),)
    yield "zeros", (torch.zeros(2, 32),)
    yield "refused: one negative", (torch.rand(2, 32).index_fill(1, torch.tensor([7]), -1e-3),)
    yield "refused: NaN", (torch.full((2, 32), torch.nan),)
