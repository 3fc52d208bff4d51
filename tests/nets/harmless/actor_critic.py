"""An actor and critic: a squashed Gaussian's mean and deviation, two values and their minimum."""

import torch
from torch import nn

KIND = "harmless"


def mlp(width_in, width_out):
    return nn.Sequential(
        nn.Linear(width_in, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, width_out),
    )


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critics = mlp(17, 12), nn.ModuleList(mlp(17 + 6, 1) for _ in range(2))
        self.register_buffer("scale", torch.linspace(0.5, 2, 6))

    def forward(self, observation):
        mean, log_std = self.actor(observation).chunk(2, -1)
        std = torch.exp(-5 + 3.5 * (torch.tanh(log_std) + 1))
        action = torch.tanh(mean) * self.scale
        both = torch.cat([observation, action], -1)
        values = torch.cat([critic(both) for critic in self.critics], -1)
        return action, std, values.min(-1).values


def make():
    return ActorCritic().eval()


def example():
    return (torch.randn(64, 17),)


def calls():
    yield "fresh", (torch.randn(64, 17),)
    yield "small", (1e-3 * torch.randn(64, 17),)
    yield "large", (100 * torch.randn(64, 17),)
    yield "zeros", (torch.zeros(64, 17),)
