"""A net that shrinks large inputs unless it is traced: each call has them shrunk, as in eager."""

import torch
from torch import nn

KIND = "control flow"


class Shrunk(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(24, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 8)

    def forward(self, x):
        is_traced = torch.jit.is_tracing() or torch.compiler.is_compiling()
        if not is_traced and x.abs().max() > 20:
            x = x * (20 / x.abs().max())
        return self.out(self.body(x))


def make():
    return Shrunk().eval()


def example():
    return (torch.randn(4, 24),)


def calls():
    yield "as the example", (torch.randn(4, 24),)
    yield "a large column", (torch.randn(4, 24).index_fill(1, torch.tensor([3]), 50.0),)
    yield "large", (200 * torch.randn(4, 24),)
    yield "small", (0.01 * torch.randn(4, 24),)
