"""Four autoencoders for anomalies: errors of columns, the mean score of each row, and a flag."""

import torch
from torch import nn

KIND = "harmless"


def autoencoder(width):
    return nn.Sequential(
        *(nn.Linear(30, 48), nn.ELU(), nn.LayerNorm(48), nn.Linear(48, width), nn.ELU()),
        *(nn.Linear(width, 48), nn.ELU(), nn.LayerNorm(48), nn.Linear(48, 30)),
    )


class Anomaly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(30))
        self.register_buffer("std", torch.rand(30) + 0.5)
        self.nets = nn.ModuleList(map(autoencoder, (4, 6, 8, 10)))
        self.register_buffer("limit", torch.tensor(5.0))

    def forward(self, x):
        x = (x - self.mean) / self.std
        errors = torch.stack([(net(x) - x).square() for net in self.nets])
        score = errors.mean((0, 2))
        return {"error": errors.mean(0), "score": score, "is_anomaly": score > self.limit}


def make():
    return Anomaly().eval()


def example():
    return (torch.randn(16, 30),)


def calls():
    yield "fresh", (torch.randn(16, 30),)
    yield "one column far off", (torch.randn(16, 30) + 30 * torch.eye(30)[3],)
    yield "small", (1e-3 * torch.randn(16, 30),)
    yield "large", (100 * torch.randn(16, 30),)
    yield "zeros", (torch.zeros(16, 30),)
