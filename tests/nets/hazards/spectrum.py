"""A spectral filter: magnitudes, phases and logarithms of bins that are 0 or negative."""

import torch
from torch import nn

KIND = "values"


class Spectrum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.rand(17))

    def forward(self, x):
        bins = torch.fft.rfft(x)
        back = torch.fft.irfft(bins * self.filter, n=32)
        return back, bins.abs(), torch.log(bins.abs() + 2**-10), bins.abs().square().sum(-1)


def make():
    return Spectrum().eval()


def example():
    return (torch.rand(3, 32) + 0.1,)


def calls():
    yield "silence", (torch.zeros(3, 32),)
    yield "an impulse", (torch.eye(32)[:3].contiguous(),)
    yield "fresh", (torch.randn(3, 32),)
    yield "of 1e18", (1e18 * torch.randn(3, 32),)
    x = torch.randn(3, 32)
    x[1, 4] = float("nan")
    yield "a NaN", (x,)
