"""A net that calls F.dropout without training=False: it drops in evaluation mode too."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


class Forgetful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(F.dropout(F.gelu(self.norm(self.stem(x))), 0.2))


def make():
    return Forgetful().eval()


def example():
    return (torch.randn(3, 12),)


def seeded(net):
    torch.manual_seed(3)
    return [net(torch.ones(3, 12)) for _ in range(2)], torch.rand(3)


def calls():
    yield "from one seed", seeded
    yield "from where it is", lambda net: [net(torch.ones(3, 12)), torch.rand(2)]
    yield "from one seed again", seeded
