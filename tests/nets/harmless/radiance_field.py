"""A field like NeRF's: sines of places and directions, an MLP with a skip, colour and density."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


def waves(x, count):
    angle = x.unsqueeze(-2) * (2.0 ** torch.arange(count, device=x.device)).unsqueeze(-1)
    return torch.cat([x, angle.sin().flatten(-2), angle.cos().flatten(-2)], -1)


class Field(nn.Module):
    def __init__(self, width=96) -> None:
        super().__init__()
        inputs = 3 + 6 * 6
        self.first = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width)])
        self.second = nn.ModuleList([nn.Linear(width + inputs, width), nn.Linear(width, width)])
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.colour = nn.Sequential(
            nn.Linear(width + 3 + 6 * 2, 48), nn.ReLU(), nn.Linear(48, 3), nn.Sigmoid()
        )

    def forward(self, places, directions):
        encoded = waves(places, 6)
        x = encoded
        for layer in self.first:
            x = F.relu(layer(x))
        x = torch.cat([encoded, x], -1)
        for layer in self.second:
            x = F.relu(layer(x))
        seen = waves(F.normalize(directions, dim=-1), 2)
        return self.colour(torch.cat([self.feature(x), seen], -1)), F.softplus(self.density(x))


def make():
    return Field().eval()


def example():
    return 2 * torch.rand(128, 3) - 1, torch.randn(128, 3)


def calls():
    yield "fresh", (2 * torch.rand(128, 3) - 1, torch.randn(128, 3))
    yield "around the middle", (1e-3 * torch.randn(128, 3), torch.randn(128, 3))
    yield "the middle", (torch.zeros(128, 3), torch.randn(128, 3))
    yield "along an axis", (2 * torch.rand(128, 3) - 1, torch.eye(3)[0].repeat(128, 1))
