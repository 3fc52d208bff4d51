"""A net that draws random numbers and does not use them: torch's generator moves, as in eager."""

import torch
from torch import nn

KIND = "state"


class Moving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        noise = torch.randn_like(x)
        return self.out(self.body(x + 0 * noise))


def make():
    return Moving().eval()


def example():
    return (torch.randn(3, 12),)


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "numbers drawn afterwards", lambda net: [net(torch.ones(3, 12)), torch.rand(3)]
    yield (
        "and after two calls",
        lambda net: [net(torch.ones(3, 12)), net(torch.ones(3, 12)), torch.rand(3)],
    )
