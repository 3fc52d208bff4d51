"""A classifier of sounds by power spectra: mel bands, a logarithm, its norm, a convnet."""

import torch
from torch import nn

KIND = "harmless"


class SpectrogramNet(nn.Module):
    def __init__(self, bins=129, bands=40) -> None:
        super().__init__()
        centre = torch.linspace(0, 1, bands + 2) ** 2 * (bins - 1)
        place = torch.arange(bins).unsqueeze(1)
        rise = (place - centre[:-2]) / (centre[1:-1] - centre[:-2])
        fall = (centre[2:] - place) / (centre[2:] - centre[1:-1])
        self.register_buffer("bands", torch.minimum(rise, fall).clamp(min=0))
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.head = nn.Linear(24 * 2, 10)

    def forward(self, power):
        mel = torch.log(power.transpose(1, 2) @ self.bands + 1e-5)
        mel = (mel - mel.mean((1, 2), keepdim=True)) / (mel.std((1, 2), keepdim=True) + 0.1)
        x = self.body(mel.unsqueeze(1))
        return self.head(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1))


def make():
    return SpectrogramNet().eval()


def spectra(scale=1.0):
    return (scale * torch.randn(1, 129, 60).square(),)


def example():
    return spectra()


def calls():
    yield "fresh", spectra()
    yield "quiet", spectra(1e-3)
    yield "loud", spectra(100.0)
    yield "silence", spectra(0.0)
    tone = torch.zeros(1, 129, 60)
    tone[:, 30] = 50
    yield "one tone", (tone,)
