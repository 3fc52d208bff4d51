"""An actor and five critics: a squashed Gaussian's mean and deviation, and the least two values."""

import torch
from torch import nn

KIND = "harmless"


def mlp(width_in, width_out):
    return nn.Sequential(
        *(nn.Linear(width_in, 64), nn.LayerNorm(64), nn.ReLU()),
        *(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, width_out)),
    )


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critics = mlp(17, 12), nn.ModuleList(mlp(17 + 6, 1) for _ in range(5))
        self.register_buffer("scale", torch.linspace(0.5, 2, 6))

    def forward(self, observation):
        mean, log_std = self.actor(observation).chunk(2, -1)
        std = torch.exp(-5 + 3.5 * (torch.tanh(log_std) + 1))
        action = torch.tanh(mean) * self.scale
        both = torch.cat([observation, action], -1)
        values = torch.cat([critic(both) for critic in self.critics], -1)
        return action, std, values.sort(-1).values[:, :2].mean(-1)


def make():
    return ActorCritic().eval()


def example():
    return (torch.randn(16, 17),)


def calls():
    yield "fresh", (torch.randn(16, 17),)
    yield "small", (1e-3 * torch.randn(16, 17),)
    yield "large", (100 * torch.randn(16, 17),)
    yield "zeros", (torch.zeros(16, 17),)
