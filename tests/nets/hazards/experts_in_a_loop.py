"""A mixture of experts that skips experts without tokens: each call routes its own tokens."""

import torch
from torch import nn

KIND = "control flow"


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.router = nn.LayerNorm(16), nn.Linear(16, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)) for _ in range(4)
        )

    def forward(self, x):
        tokens = self.norm(x).flatten(0, 1)
        weights, chosen = self.router(tokens).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            if rows.numel() == 0:
                continue
            mixed.index_add_(0, rows, expert(tokens[rows]) * weights[rows, places, None])
        return x + mixed.view_as(x)


def make():
    return Mixture().eval()


def example():
    return (torch.randn(1, 6, 16),)


def calls():
    for number in range(3):
        yield f"fresh {number}", (torch.randn(1, 6, 16),)
    yield "one token repeated: two experts alone", (torch.randn(1, 1, 16).repeat(1, 6, 1),)
    yield "more tokens", (torch.randn(2, 9, 16),)
