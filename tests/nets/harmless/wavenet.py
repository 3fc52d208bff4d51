"""A net like WaveNet: gated dilated convolutions with skips, conditioned on a speaker."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class WaveNet(nn.Module):
    def __init__(self, width=24, dilations=(1, 2, 4, 8, 1, 2, 4, 8)) -> None:
        super().__init__()
        self.dilations = dilations
        self.first, self.speakers = nn.Conv1d(1, width, 1), nn.Embedding(6, 2 * width)
        self.gated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in dilations)
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, 32, 1) for _ in dilations)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(32, 64, 1), nn.ReLU(), nn.Conv1d(64, 64, 1))

    def forward(self, wave, speaker):
        x, total = self.first(wave), 0
        condition = self.speakers(speaker).unsqueeze(-1)
        for number, dilation in enumerate(self.dilations):
            gated = self.gated[number](F.pad(x, (dilation, 0))) + condition
            filtered, gate = gated.chunk(2, 1)
            out = torch.tanh(filtered) * torch.sigmoid(gate)
            total = total + self.skip[number](out)
            x = (x + self.residual[number](out)) * 0.5**0.5
        return self.last(total)


def make():
    return WaveNet().eval()


def example():
    return torch.rand(1, 1, 160) * 2 - 1, torch.tensor([2])


def calls():
    yield "fresh", (torch.rand(1, 1, 160) * 2 - 1, torch.tensor([3]))
    yield "the first speaker", (torch.rand(1, 1, 160) * 2 - 1, torch.tensor([0]))
    yield "the last speaker", (torch.rand(1, 1, 160) * 2 - 1, torch.tensor([5]))
    yield "quiet", (1e-3 * torch.randn(1, 1, 160), torch.tensor([1]))
    yield "silence", (torch.zeros(1, 1, 160), torch.tensor([4]))
    yield "refused: no such speaker", (torch.zeros(1, 1, 160), torch.tensor([6]))
