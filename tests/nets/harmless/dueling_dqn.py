"""Values of actions from four frames in bytes: a value, and advantages around their mean."""

import torch
from torch import nn

KIND = "harmless"


class DuelingDqn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            *(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU()),
            *(nn.Conv2d(32, 32, 3, 1), nn.ReLU(), nn.Flatten()),
        )
        self.value = nn.Sequential(nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 1))
        self.advantage = nn.Sequential(nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 6))

    def forward(self, frames):
        features = self.convs(frames.to(self.value[0].weight.dtype) / 255.0)
        advantage = self.advantage(features)
        return self.value(features) + advantage - advantage.mean(1, keepdim=True)


def make():
    return DuelingDqn().eval()


def frames():
    return torch.randint(256, (1, 4, 60, 60), dtype=torch.uint8)


def example():
    return (frames(),)


def calls():
    yield "fresh", (frames(),)
    yield "dark", (frames() // 64,)
    yield "black", (0 * frames(),)
    yield "white", (torch.full((1, 4, 60, 60), 255, dtype=torch.uint8),)
