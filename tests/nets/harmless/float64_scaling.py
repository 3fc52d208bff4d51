"""Features in float64: scaled by means, or by signed logarithms, then a residual net in float32."""

import torch
from torch import nn

KIND = "harmless"


class Residual(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.LayerNorm(width), nn.Linear(width, 96), nn.ReLU(), nn.Linear(96, width)),
        )

    def forward(self, x):
        return x + self.layers(x)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.linspace(-3, 1e6, 24, dtype=torch.float64))
        self.register_buffer("deviation", torch.linspace(0.5, 2e5, 24, dtype=torch.float64))
        self.layers = nn.Sequential(
            *(nn.Linear(48, 48), Residual(48), Residual(48), Residual(48), Residual(48)),
            nn.Linear(48, 3),
        )

    def forward(self, features):
        scaled = ((features - self.mean) / self.deviation).clamp(-10, 10)
        logarithm = features.sign() * features.abs().log1p() / 10
        both = torch.cat([scaled, logarithm], 1)
        return self.layers(both.to(self.layers[0].weight.dtype))


def make():
    return Scaled().eval()


def features(scale=1.0):
    deviation = torch.linspace(0.5, 2e5, 24, dtype=torch.float64)
    mean = torch.linspace(-3, 1e6, 24, dtype=torch.float64)
    return mean + scale * deviation * torch.randn(4, 24, dtype=torch.float64)


def example():
    return (features(),)


def calls():
    yield "fresh", (features(),)
    yield "all near the means", (features(1e-3),)
    yield "far from the means", (features(100),)
    yield "zeros", (torch.zeros(4, 24, dtype=torch.float64),)
