"""A net that indexes its list of modules by an argmax: each call its own expert."""

import torch
from torch import nn

KIND = "control flow"


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(12, 3)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))
            for _ in range(3)
        )

    def forward(self, x):
        chosen = int(self.router(x).mean(0).argmax())
        return self.experts[chosen](x)


def make():
    return Routed().eval()


def example():
    return (torch.randn(4, 12),)


def calls():
    for number in range(8):
        yield f"fresh {number}", (3 * torch.randn(4, 12),)
