"""A net that returns a penalty where its input requires a gradient: also without gradients on."""

import torch
from torch import nn

KIND = "control flow"


class Penalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48),
            nn.GELU(),
            nn.LayerNorm(48),
            nn.Dropout(0.1),
            nn.Linear(48, 48),
            nn.GELU(),
            nn.LayerNorm(48),
            nn.Dropout(0.1),
            nn.Linear(48, 4),
        )

    def forward(self, x):
        out = self.body(x)
        if x.requires_grad:
            out = out + x.square().mean(-1, keepdim=True)
        return out


def make():
    return Penalised().eval()


def example():
    return (torch.randn(3, 12),)


def calls():
    yield "no gradient needed", (torch.randn(3, 12),)
    yield "a gradient needed", (torch.randn(3, 12).requires_grad_(),)
    yield "a parameter", (nn.Parameter(torch.randn(3, 12)),)
