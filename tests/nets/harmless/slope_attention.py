"""A causal encoder with a slope for distance in each head and no places, over real features."""

import torch
from torch import nn

KIND = "harmless"


class SlopeLayer(nn.Module):
    def __init__(self, width=48, heads=4, length=40) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.gate, self.down = nn.Linear(width, 2 * 64), nn.Linear(64, width)
        slopes = 2.0 ** -torch.arange(1.0, heads + 1)
        place = torch.arange(length)
        bias = slopes.view(-1, 1, 1) * (place[None] - place[:, None]).float()
        is_later = place[None] > place[:, None]
        self.register_buffer("bias", bias.masked_fill(is_later, float("-inf")))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5 + self.bias
        mixed = torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v)
        x = x + self.out(mixed.flatten(-2))
        return x + self.down(nn.functional.glu(self.gate(x)))


def make():
    return nn.Sequential(nn.Linear(12, 48), SlopeLayer(), SlopeLayer(), nn.Linear(48, 3)).eval()


def example():
    return (torch.randn(1, 40, 12),)


def calls():
    yield "fresh", (torch.randn(1, 40, 12),)
    yield "small", (1e-3 * torch.randn(1, 40, 12),)
    yield "large", (100 * torch.randn(1, 40, 12),)
    yield "zeros", (torch.zeros(1, 40, 12),)
    yield "only the last step", (torch.randn(1, 40, 12) * torch.eye(40)[-1].view(1, 40, 1),)
