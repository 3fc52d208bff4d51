"""Capsules with three rounds of routing by agreement, and the length of each output capsule."""

import torch
from torch import nn

KIND = "harmless"


def squashed(x):
    square = (x * x).sum(-1, keepdim=True)
    return square / (1 + square) * x * torch.rsqrt(square + 1e-6)


class Capsules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 5, 2)
        self.primary = nn.Conv2d(16, 16, 5, 2)
        self.votes = nn.Parameter(0.2 * torch.randn(36, 10, 8, 4))

    def forward(self, image):
        x = self.primary(torch.relu(self.first(image)))
        capsules = squashed(x.flatten(1).view(len(x), -1, 4))
        votes = torch.einsum("bid,iokd->biok", capsules, self.votes)
        logits = torch.zeros(votes.shape[:3], dtype=votes.dtype, device=votes.device)
        for number in range(3):
            weights = logits.softmax(2).unsqueeze(-1)
            outputs = squashed((weights * votes).sum(1))
            if number < 2:
                logits = logits + (votes * outputs.unsqueeze(1)).sum(-1)
        return outputs.square().sum(-1).add(1e-9).sqrt(), outputs


def make():
    return Capsules().eval()


def example():
    return (torch.rand(4, 1, 22, 22),)


def calls():
    yield "fresh", (torch.rand(4, 1, 22, 22),)
    yield "dark", (0.01 * torch.rand(4, 1, 22, 22),)
    yield "bright", (100 * torch.rand(4, 1, 22, 22),)
    yield "black", (torch.zeros(4, 1, 22, 22),)
