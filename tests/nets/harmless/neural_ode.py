"""A neural ODE by eight fixed Runge-Kutta steps, whose path is returned."""

import torch
from torch import nn

KIND = "harmless"


class Slope(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 48), nn.Tanh(), nn.Linear(48, 8))

    def forward(self, time, x):
        return self.layers(torch.cat([x, time.expand(len(x), 1)], 1)) - 0.1 * x


class NeuralOde(nn.Module):
    def __init__(self, steps=8) -> None:
        super().__init__()
        self.steps, self.slope = steps, Slope()

    def forward(self, x, end):
        step, time, path = end / self.steps, torch.zeros_like(end), [x]
        for _ in range(self.steps):
            k1 = self.slope(time, x)
            k2 = self.slope(time + step / 2, x + step / 2 * k1)
            k3 = self.slope(time + step / 2, x + step / 2 * k2)
            k4 = self.slope(time + step, x + step * k3)
            x, time = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4), time + step
            path.append(x)
        return torch.stack(path, 1)


def make():
    return NeuralOde().eval()


def example():
    return torch.randn(16, 8), torch.tensor(2.0)


def calls():
    yield "fresh", (torch.randn(16, 8), torch.tensor(1.0))
    yield "no time", (torch.randn(16, 8), torch.tensor(0.0))
    yield "backwards", (torch.randn(16, 8), torch.tensor(-1.0))
    yield "small", (1e-3 * torch.randn(16, 8), torch.tensor(2.0))
    yield "large", (100 * torch.randn(16, 8), torch.tensor(2.0))
    yield "zeros", (torch.zeros(16, 8), torch.tensor(3.0))
