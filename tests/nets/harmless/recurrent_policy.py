"""One step of a recurrent policy: observations and a state to actions, a value and a new state."""

import torch
from torch import nn

KIND = "harmless"


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(32))
        self.register_buffer("variance", torch.rand(32) + 0.5)
        self.encode = nn.Sequential(
            *(nn.Linear(32, 64), nn.LayerNorm(64), nn.Tanh()),
            *(nn.Linear(64, 64), nn.LayerNorm(64), nn.Tanh()),
        )
        self.cells = nn.ModuleList(nn.GRUCell(64, 64) for _ in range(2))
        self.action = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 6))
        self.value = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((6,), -0.5))

    def forward(self, observation, states, is_first):
        states = torch.where(is_first.view(1, -1, 1), torch.zeros_like(states), states)
        observation = (observation - self.mean) * torch.rsqrt(self.variance + 1e-8)
        x, new = self.encode(observation.clamp(-5, 5)), []
        for cell, state in zip(self.cells, states.unbind(0), strict=True):
            x = cell(x, state)
            new.append(x)
        mean = torch.tanh(self.action(x))
        std = self.log_std.clamp(-4, 1).exp() * torch.ones_like(mean)
        value = self.value(x).squeeze(-1)
        return {"mean": mean, "std": std, "value": value, "states": torch.stack(new)}


def make():
    return Policy().eval()


def step(first, scale=1.0):
    return scale * torch.randn(4, 32), torch.randn(2, 4, 64).tanh(), torch.tensor(first)


def example():
    return step([True, False, False, False])


def calls():
    yield "fresh", step([False, True, True, False])
    yield "all first", step([True] * 4)
    yield "none first", step([False] * 4)
    for scale in (0.0, 1e-3, 100.0):
        yield f"observations of scale {scale}", step([False] * 4, scale)
