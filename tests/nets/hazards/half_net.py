"""A float16 net with layer norm and a residual, as checkpoints hold them; float16 comes out."""

import torch
from torch import nn

KIND = "process"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def make():
    return Block().eval().half()


def example():
    return (torch.randn(8, 32).half(),)


def calls():
    yield "fresh", (torch.randn(8, 32).half(),)
    yield "small", (1e-4 * torch.randn(8, 32).half(),)
    yield "beyond 65504", (torch.full((8, 32), 60000.0).half(),)
    yield "another batch", (torch.randn(3, 32).half(),)
    yield "refused: float32", (torch.randn(8, 32),)
