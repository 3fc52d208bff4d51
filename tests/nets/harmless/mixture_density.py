"""A mixture of five Gaussians: their weights, means and deviations, and a target's log density."""

import math

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class MixtureDensity(nn.Module):
    def __init__(self, num_parts=5, width=3) -> None:
        super().__init__()
        self.shape = (num_parts, width)
        self.first = nn.Linear(14, 48)
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(48) for _ in range(5))
        self.weights = nn.Linear(48, num_parts)
        self.means, self.scales = (nn.Linear(48, num_parts * width) for _ in range(2))

    def forward(self, x, target):
        hidden = self.first(x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = hidden + torch.tanh(layer(norm(hidden)))
        log_weights = F.log_softmax(self.weights(hidden), -1)
        means = self.means(hidden).unflatten(-1, self.shape)
        scales = F.softplus(self.scales(hidden)).unflatten(-1, self.shape) + 0.05
        z = (target.unsqueeze(1) - means) / scales
        log_parts = -0.5 * (z * z + math.log(2 * math.pi)).sum(-1) - scales.log().sum(-1)
        return torch.logsumexp(log_weights + log_parts, -1), log_weights.exp(), means, scales


def make():
    return MixtureDensity().eval()


def example():
    return torch.randn(16, 14), torch.randn(16, 3)


def calls():
    yield "fresh", (torch.randn(16, 14), torch.randn(16, 3))
    yield "small", (1e-3 * torch.randn(16, 14), torch.randn(16, 3))
    yield "large", (10 * torch.randn(16, 14), torch.randn(16, 3))
    yield "targets far off", (torch.randn(16, 14), 30 * torch.randn(16, 3))
    yield "zeros", (torch.zeros(16, 14), torch.zeros(16, 3))
