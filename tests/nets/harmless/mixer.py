"""An MLP-mixer: MLPs over patches and over channels in turn."""

import torch
from torch import nn

KIND = "harmless"


def mlp(width, hidden):
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU("tanh"), nn.Linear(hidden, width))


class Mixer(nn.Module):
    def __init__(self, width, patches) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_patches, self.over_channels = mlp(patches, 48), mlp(width, 128)

    def forward(self, x):
        x = x + self.over_patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.norm2(x))


class MixerNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.mixers = nn.Sequential(*(Mixer(64, 16) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).mT
        return self.head(self.norm(self.mixers(x)).mean(dim=1))


def make():
    return MixerNet().eval()


def example():
    return (torch.randn(4, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(4, 3, 32, 32),)
    yield "small", (1e-3 * torch.randn(4, 3, 32, 32),)
    yield "large", (100 * torch.randn(4, 3, 32, 32),)
    yield "black", (torch.zeros(4, 3, 32, 32),)
