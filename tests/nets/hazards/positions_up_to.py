"""A net that makes as many positions as a tensor says: the output's shape is of each call."""

import torch
from torch import nn

KIND = "control flow"


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 8))

    def forward(self, context, count):
        places = torch.arange(min(int(count), 64), dtype=context.dtype)
        waves = places[:, None] * 0.5 ** torch.arange(8, dtype=context.dtype)
        return self.body(context + torch.cat([waves.sin(), waves.cos()], -1))


def make():
    return Positions().eval()


def example():
    return torch.randn(16), torch.tensor(10)


def calls():
    for count in (10, 1, 0, 33):
        yield f"{count} positions", (torch.randn(16), torch.tensor(count))
    yield "refused: a negative number of them", (torch.randn(16), torch.tensor(-1))
