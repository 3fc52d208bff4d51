"""A Fourier net: complex weights mix the lowest waves of a field, the others are dropped."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class FourierLayer(nn.Module):
    def __init__(self, width, modes) -> None:
        super().__init__()
        self.modes, self.local = modes, nn.Conv1d(width, width, 1)
        self.real = nn.Parameter(torch.randn(width, width, modes) / width)
        self.imaginary = nn.Parameter(torch.randn(width, width, modes) / width)

    def forward(self, x):
        waves = torch.fft.rfft(x)[..., : self.modes]
        mixed = torch.einsum("bim,iom->bom", waves, torch.complex(self.real, self.imaginary))
        mixed = F.pad(mixed, (0, x.shape[-1] // 2 + 1 - self.modes))
        return torch.fft.irfft(mixed, n=x.shape[-1]) + self.local(x)


class FourierOperator(nn.Module):
    def __init__(self, width=24) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(2, width, 1), nn.Conv1d(width, 1, 1)
        self.layers = nn.ModuleList(FourierLayer(width, 12) for _ in range(3))

    def forward(self, field):
        place = torch.linspace(0, 1, field.shape[-1], device=field.device, dtype=field.dtype)
        x = self.first(torch.stack([field, place.expand_as(field)], 1))
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.last(x).squeeze(1)


def make():
    return FourierOperator().eval()


def example():
    return (torch.randn(4, 128),)


def calls():
    yield "fresh", (torch.randn(4, 128),)
    yield "small", (1e-3 * torch.randn(4, 128),)
    yield "large", (100 * torch.randn(4, 128),)
    yield "a sine", (torch.sin(torch.arange(512) / 20).view(4, 128),)
    yield "zeros", (torch.zeros(4, 128),)
