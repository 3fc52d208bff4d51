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
        self.trunk = nn.Sequential(nn.Linear(14, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh())
        self.weights = nn.Linear(96, num_parts)
        self.means, self.scales = (nn.Linear(96, num_parts * width) for _ in range(2))

    def forward(self, x, target):
        hidden = self.trunk(x)
        log_weights = F.log_softmax(self.weights(hidden), -1)
        means = self.means(hidden).unflatten(-1, self.shape)
        scales = F.softplus(self.scales(hidden)).unflatten(-1, self.shape) + 0.05
        z = (target.unsqueeze(1) - means) / scales
        log_parts = -0.5 * (z * z + math.log(2 * math.pi)).sum(-1) - scales.log().sum(-1)
        return torch.logsumexp(log_weights + log_parts, -1), log_weights.exp(), means, scales


def make():
    return MixtureDensity().eval()


def example():
    return torch.randn(256, 14), torch.randn(256, 3)


def calls():
    yield "fresh", (torch.randn(256, 14), torch.randn(256, 3))
    yield "small", (1e-3 * torch.randn(256, 14), torch.randn(256, 3))
    yield "large", (100 * torch.randn(256, 14), torch.randn(256, 3))
    yield "targets far off", (torch.randn(256, 14), 30 * torch.randn(256, 3))
    yield "zeros", (torch.zeros(256, 14), torch.zeros(256, 3))
