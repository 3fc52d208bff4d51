"""An encoder of waves like wav2vec: strided convolutions with group norm, then attention."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class AudioEncoder(nn.Module):
    def __init__(self, width=48) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(a, b, kernel, stride, bias=False)
            for a, b, kernel, stride in ((1, 32, 10, 5), (32, 32, 3, 2), (32, 48, 3, 2))
        )
        self.group = nn.GroupNorm(32, 32)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.places = nn.Conv1d(width, width, 16, padding=8, groups=8)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, wave):
        wave = (wave - wave.mean(-1, keepdim=True)) / torch.sqrt(wave.var(-1, keepdim=True) + 1e-5)
        x = wave.unsqueeze(1)
        for number, conv in enumerate(self.convs):
            x = conv(x)
            x = F.gelu(self.group(x) if number == 0 else x)
        x = x + F.gelu(self.places(x)[:, :, :-1])
        x = x.transpose(1, 2)
        own = self.norm1(x)
        x = x + self.attention(own, own, own, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def make():
    return AudioEncoder().eval()


def example():
    return (torch.randn(1, 1000),)


def calls():
    yield "fresh", (torch.randn(1, 1000),)
    yield "quiet", (0.01 * torch.randn(1, 1000),)
    yield "loud", (100 * torch.randn(1, 1000),)
    yield "a sine", (torch.sin(torch.arange(1000) / 7).unsqueeze(0),)
    yield "silence", (torch.zeros(1, 1000),)
