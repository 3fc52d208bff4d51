"""An equilibrium layer that iterates until it moves by less than 1e-3: as often as needed."""

import torch
from torch import nn

KIND = "control flow"


class Equilibrium(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)
        with torch.no_grad():
            self.inner.weight.mul_(0.9 / torch.linalg.matrix_norm(self.inner.weight, 2))
        self.inject, self.out = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        injected = self.inject(x)
        state, moved, count = torch.zeros_like(injected), torch.inf, 0
        while moved > 1e-3 and count < 60:
            following = torch.tanh(self.inner(state) + injected)
            moved, count = (following - state).abs().max(), count + 1
            state = following
        return self.out(state), torch.tensor(count)


def make():
    return Equilibrium().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    for scale in (1.0, 0.01, 30.0, 0.0):
        yield f"inputs of scale {scale}", (scale * torch.randn(4, 16),)
