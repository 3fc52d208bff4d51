"""Features scaled in float64 by a table of means and deviations, then an MLP in float32."""

import torch
from torch import nn

KIND = "harmless"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.linspace(-3, 1e6, 24, dtype=torch.float64))
        self.register_buffer("deviation", torch.linspace(0.5, 2e5, 24, dtype=torch.float64))
        self.layers = nn.Sequential(
            *(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 3))
        )

    def forward(self, features):
        scaled = ((features - self.mean) / self.deviation).clamp(-10, 10)
        return self.layers(scaled.to(self.layers[0].weight.dtype))


def make():
    return Scaled().eval()


def features(scale=1.0):
    deviation = torch.linspace(0.5, 2e5, 24, dtype=torch.float64)
    mean = torch.linspace(-3, 1e6, 24, dtype=torch.float64)
    return mean + scale * deviation * torch.randn(256, 24, dtype=torch.float64)


def example():
    return (features(),)


def calls():
    yield "fresh", (features(),)
    yield "all near the means", (features(1e-3),)
    yield "far from the means", (features(100),)
    yield "zeros", (torch.zeros(256, 24, dtype=torch.float64),)
