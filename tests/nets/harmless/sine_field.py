"""A field of sines of sines, whose inputs are coordinates and a code of the scene."""

import torch
from torch import nn

KIND = "harmless"


class Sine(nn.Module):
    def __init__(self, width_in, width_out, rate) -> None:
        super().__init__()
        self.rate, self.linear = rate, nn.Linear(width_in, width_out)
        bound = 1 / width_in if rate > 5 else (6 / width_in) ** 0.5 / rate
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x, scale, shift):
        return torch.sin(self.rate * self.linear(x) * scale + shift)


class Field(nn.Module):
    def __init__(self, width=32) -> None:
        super().__init__()
        self.code = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 12 * width))
        self.layers = nn.ModuleList(
            [Sine(2, width, 10.0), *(Sine(width, width, 2.0) for _ in range(5))]
        )
        self.out = nn.Linear(width, 3)

    def forward(self, coordinates, code):
        styles = self.code(code).unflatten(-1, (6, 2, -1)).unsqueeze(1)
        x = coordinates
        for number, layer in enumerate(self.layers):
            x = layer(x, 1 + styles[:, :, number, 0], styles[:, :, number, 1])
        return self.out(x)


def make():
    return Field().eval()


def example():
    return 2 * torch.rand(1, 25, 2) - 1, torch.randn(1, 16)


def calls():
    yield "fresh", (2 * torch.rand(1, 25, 2) - 1, torch.randn(1, 16))
    yield "around the middle", (1e-3 * torch.randn(1, 25, 2), torch.randn(1, 16))
    yield "no code", (2 * torch.rand(1, 25, 2) - 1, torch.zeros(1, 16))
    yield "zeros", (torch.zeros(1, 25, 2), torch.zeros(1, 16))
