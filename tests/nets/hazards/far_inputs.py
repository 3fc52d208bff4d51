"""A convnet on inputs of 1e15 to 1e30: what overflows is infinite or NaN, as in eager PyTorch."""

import torch
from torch import nn

KIND = "values"


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3)
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        pooled = self.body(x).mean((2, 3))
        return self.head(pooled), torch.tanh(pooled), (pooled * pooled).sum(-1)


def make():
    return Conv().eval()


def example():
    return (torch.rand(2, 3, 12, 12),)


def calls():
    for scale in (1e-15, 1e8, 1e15, 1e30):
        yield f"of {scale:g}", (scale * torch.randn(2, 3, 12, 12),)
    x = torch.randn(2, 3, 12, 12)
    x[1, 0, 5, 5] = float("inf")
    yield "one infinity", (x,)
