"""Two voices from one wave: a learned basis, masks by dilated convolutions, overlapping sums."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Separator(nn.Module):
    def __init__(self, basis=48, width=32) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, basis, 16, 8, bias=False)
        self.norm, self.narrow = nn.GroupNorm(1, basis, eps=1e-8), nn.Conv1d(basis, width, 1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                *(nn.Conv1d(width, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48)),
                *(nn.Conv1d(48, 48, 3, dilation=d, padding=d, groups=48), nn.PReLU()),
                *(nn.GroupNorm(1, 48), nn.Conv1d(48, width, 1)),
            )
            for d in (1, 2, 4)
        )
        self.masks = nn.Conv1d(width, 2 * basis, 1)
        self.decode = nn.ConvTranspose1d(basis, 1, 16, 8, bias=False)

    def forward(self, wave):
        mixed = F.relu(self.encode(wave.unsqueeze(1)))
        x = self.narrow(self.norm(mixed))
        for layer in self.layers:
            x = x + layer(x)
        masks = self.masks(x).unflatten(1, (2, -1)).sigmoid()
        voices = (masks * mixed.unsqueeze(1)).flatten(0, 1)
        return self.decode(voices).view(len(wave), 2, -1)


def make():
    return Separator().eval()


def example():
    return (torch.randn(1, 800),)


def calls():
    yield "fresh", (torch.randn(1, 800),)
    yield "quiet", (0.1 * torch.randn(1, 800),)
    yield "loud", (100 * torch.randn(1, 800),)
    yield "a sine", (torch.sin(torch.arange(800) / 5).unsqueeze(0),)
