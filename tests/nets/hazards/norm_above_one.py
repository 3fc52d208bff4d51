"""An encoder that shrinks its embedding only where its norm is above 1: short ones stay."""

import torch
from torch import nn

KIND = "control flow"


class Ball(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.out = nn.Linear(40, 8, bias=False)

    def forward(self, x):
        embedding = self.out(self.body(x))
        norm = embedding.norm()
        if norm > 1:
            embedding = embedding / norm
        return torch.atanh(0.5 * embedding)


def make():
    return Ball().eval()


def example():
    return (0.1 * torch.randn(1, 20),)


def calls():
    for scale in (0.1, 1.0, 10.0, 0.0):
        yield f"inputs of scale {scale}", (scale * torch.randn(1, 20),)
