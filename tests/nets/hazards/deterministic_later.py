"""A net with an op that raises where the user wants deterministic algorithms alone."""

import torch
from torch import nn

KIND = "process"


class Placed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x, where):
        return self.net(x).put(where, torch.ones(len(where)))


def make():
    return Placed().eval()


def example():
    return torch.randn(4, 16), torch.tensor([0, 5, 31])


def deterministic(net, warns=False):
    torch.use_deterministic_algorithms(True, warn_only=warns)
    try:
        return net(torch.ones(4, 16), torch.tensor([0, 5, 31]))
    finally:
        torch.use_deterministic_algorithms(False)


def calls():
    yield "other places", (torch.randn(4, 16), torch.tensor([7, 8, 9]))
    yield "places from the end", (torch.randn(4, 16), torch.tensor([-1, -32, 3]))
    yield "refused: deterministic", deterministic
    yield "not any more", (torch.randn(4, 16), torch.tensor([1, 2, 3]))
    yield "refused: a place too far", (torch.randn(4, 16), torch.tensor([0, 32, 3]))
