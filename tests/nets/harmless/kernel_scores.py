"""A scorer by radial kernels: distances to 200 support vectors, a mixture of their exponentials."""

import torch
from torch import nn

KIND = "harmless"


class KernelScores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("support", torch.randn(200, 10))
        self.log_width = nn.Parameter(torch.zeros(200))
        self.mixture = nn.Linear(200, 3)
        self.project = nn.Sequential(nn.Linear(10, 10), nn.Tanh())

    def forward(self, x):
        x = self.project(x)
        square = (x * x).sum(1, keepdim=True) + (self.support**2).sum(1)
        distance = (square - 2 * x @ self.support.t()).clamp(min=0)
        kernel = torch.exp(-distance * self.log_width.exp() / 10)
        density = torch.logsumexp(-distance / 2, dim=1)
        return self.mixture(kernel / kernel.sum(1, keepdim=True).clamp(min=1e-6)), density


def make():
    return KernelScores().eval()


def example():
    return (torch.randn(128, 10),)


def calls():
    yield "fresh", (torch.randn(128, 10),)
    yield "small", (1e-3 * torch.randn(128, 10),)
    yield "large", (100 * torch.randn(128, 10),)
    yield "zeros", (torch.zeros(128, 10),)
