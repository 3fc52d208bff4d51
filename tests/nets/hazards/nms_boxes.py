"""Boxes kept by suppressing those that overlap a better one, with equal scores and equal boxes."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Suppress(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        self.least = nn.Parameter(torch.tensor(0.5))

    def forward(self, boxes, scores):
        order = scores.topk(len(scores)).indices
        b = boxes[order]
        area = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(-1)
        corner = torch.maximum(b[:, None, :2], b[None, :, :2])
        other = torch.minimum(b[:, None, 2:], b[None, :, 2:])
        shared = (other - corner).clamp(min=0).prod(-1)
        overlap = shared / (area[:, None] + area[None] - shared).clamp(min=1e-3)
        clash = (overlap > self.least).triu(1)
        keep = torch.ones(len(b), dtype=torch.bool)
        for row in range(12):
            keep = keep & ~(clash[row] & keep[row])
        return torch.zeros_like(keep).scatter(0, order, keep), order, overlap, self.tower(b)


def make():
    return Suppress().eval()


def _grid():
    x = torch.arange(12.0)
    return torch.stack([x * 10, x * 10, x * 10 + 6, x * 10 + 6], -1)


def example():
    return _grid() + torch.rand(12, 1), torch.rand(12)


def calls():
    boxes, scores = _grid(), torch.rand(12)
    yield "equal scores", (boxes + torch.rand(12, 1), torch.full((12,), 0.5))
    yield "equal boxes", (boxes[:1].repeat(12, 1), scores)
    yield "equal in all", (boxes[:1].repeat(12, 1), torch.ones(12))
    yield "empty boxes", (boxes * 0, scores)
    yield "turned over", (boxes.flip(-1), scores)
    chain = torch.tensor([[k, 0.0, k + 4.0, 4.0] for k in range(12)])
    yield "a chain of overlaps", (chain, scores)
