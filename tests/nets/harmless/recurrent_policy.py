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
            nn.Linear(32, 128), nn.LayerNorm(128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh()
        )
        self.cell = nn.GRUCell(64, 64)
        self.action, self.value = nn.Linear(64, 6), nn.Linear(64, 1)
        self.log_std = nn.Parameter(torch.full((6,), -0.5))

    def forward(self, observation, state, is_first):
        state = torch.where(is_first.unsqueeze(-1), torch.zeros_like(state), state)
        observation = (observation - self.mean) * torch.rsqrt(self.variance + 1e-8)
        state = self.cell(self.encode(observation.clamp(-5, 5)), state)
        mean = torch.tanh(self.action(state))
        std = self.log_std.clamp(-4, 1).exp() * torch.ones_like(mean)
        return {"mean": mean, "std": std, "value": self.value(state).squeeze(-1), "state": state}


def make():
    return Policy().eval()


def step(first, scale=1.0):
    is_first = torch.tensor(first * 16)
    return scale * torch.randn(64, 32), torch.randn(64, 64).tanh(), is_first


def example():
    return step([True, False, False, False])


def calls():
    yield "fresh", step([False, True, True, False])
    yield "all first", step([True] * 4)
    yield "none first", step([False] * 4)
    for scale in (0.0, 1e-3, 100.0):
        yield f"observations of scale {scale}", step([False] * 4, scale)
