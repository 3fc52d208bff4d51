"""A net that checks its probabilities by torch._assert: rows that do not sum to 1 must raise."""

import torch
from torch import nn

KIND = "control flow"


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Parameter(torch.randn(6, 32))
        self.body = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 4))

    def forward(self, weights):
        is_right = ((weights.sum(-1) - 1).abs() < 1e-2).all()
        torch._assert(is_right, "weights of a mixture sum to 1")
        return self.body(weights @ self.parts)


def make():
    return Mixture().eval()


def example():
    return (torch.randn(5, 6).softmax(-1),)


def calls():
    yield "weights", (torch.randn(5, 6).softmax(-1),)
    yield "one part each", (torch.eye(6)[:5].clone(),)
    yield "refused: logits", (torch.randn(5, 6),)
    yield "refused: weights of twice the sum", (2 * torch.randn(5, 6).softmax(-1),)
