"""A deep ensemble: the mean of five MLPs, and the deviation of their answers."""

import torch
from torch import nn

KIND = "harmless"


class Ensemble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.members = nn.ModuleList(
            nn.Sequential(
                nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2)
            )
            for _ in range(5)
        )

    def forward(self, x):
        means, log_variances = torch.stack([member(x) for member in self.members]).unbind(-1)
        mean = means.mean(0)
        variance = log_variances.clamp(-8, 4).exp().mean(0) + means.var(0, unbiased=False)
        return mean, variance.sqrt()


def make():
    return Ensemble().eval()


def example():
    return (torch.randn(64, 16),)


def calls():
    yield "fresh", (torch.randn(64, 16),)
    yield "small", (1e-3 * torch.randn(64, 16),)
    yield "large", (100 * torch.randn(64, 16),)
    yield "zeros", (torch.zeros(64, 16),)
