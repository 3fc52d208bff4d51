"""A classifier with ReLU: a NaN or an infinity in a row makes that row NaN, and no other one."""

import torch
from torch import nn

KIND = "values"


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(16, 64), nn.Linear(64, 4)

    def forward(self, x):
        return self.head(torch.relu(self.stem(x))), torch.relu(x)


def make():
    return Classifier().eval()


def example():
    return (torch.rand(6, 16) + 0.1,)


def calls():
    for value in (float("nan"), float("inf"), -float("inf")):
        x = torch.randn(6, 16)
        x[2, 5] = value
        yield f"{value} in one row", (x,)
        yield f"all {value}", (torch.full((6, 16), value),)
    yield "negative", (-torch.rand(6, 16),)
