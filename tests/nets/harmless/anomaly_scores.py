"""An autoencoder for anomalies: the error of each column, the score of each row, and a flag."""

import torch
from torch import nn

KIND = "harmless"


class Anomaly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(30))
        self.register_buffer("std", torch.rand(30) + 0.5)
        self.net = nn.Sequential(
            *(nn.Linear(30, 64), nn.ELU(), nn.Linear(64, 8), nn.ELU()),
            *(nn.Linear(8, 64), nn.ELU(), nn.Linear(64, 30)),
        )
        self.register_buffer("limit", torch.tensor(5.0))

    def forward(self, x):
        x = (x - self.mean) / self.std
        error = (self.net(x) - x).square()
        score = error.mean(1)
        return {"error": error, "score": score, "is_anomaly": score > self.limit}


def make():
    return Anomaly().eval()


def example():
    return (torch.randn(512, 30),)


def calls():
    yield "fresh", (torch.randn(512, 30),)
    yield "one column far off", (torch.randn(512, 30) + 30 * torch.eye(30)[3],)
    yield "small", (1e-3 * torch.randn(512, 30),)
    yield "large", (100 * torch.randn(512, 30),)
    yield "zeros", (torch.zeros(512, 30),)
