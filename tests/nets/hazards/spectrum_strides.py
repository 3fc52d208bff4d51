"""Fourier transforms, whose outputs are laid out as the library lays them out, not row by row."""

import torch
from torch import nn

KIND = "form"


class Spectrum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.randn(6, 5), requires_grad=False)

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        inverse = torch.fft.irfft2(spectrum * self.filter)
        return torch.fft.fft(x, dim=0), spectrum, inverse, spectrum.real


def make():
    return Spectrum().eval()


def example():
    return (torch.randn(3, 6, 8),)


def calls():
    x = torch.randn(3, 6, 8)
    yield "fresh", (x,)
    yield "turned", (torch.randn(8, 6, 3).permute(2, 1, 0),)
    yield "one image", (torch.randn(1, 6, 8),)
    yield "strides", lambda net: [list(output.stride()) for output in net(x)]
    yield "parts", lambda net: torch.view_as_real(net(x)[1])
