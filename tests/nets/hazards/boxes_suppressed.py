"""A detector with greedy suppression of overlaps in Python: each call as many boxes as it keeps."""

import torch
from torch import nn

KIND = "control flow"


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5))

    def forward(self, features):
        corner, size, score = self.body(features).split((2, 2, 1), -1)
        boxes, score = torch.cat([corner, corner + size.exp()], -1), score[:, 0].sigmoid()
        kept, left = [], torch.argsort(score, descending=True).tolist()
        while left:
            best = left.pop(0)
            kept.append(best)
            left = [other for other in left if self.overlap(boxes[best], boxes[other]) < 0.4]
        return boxes[kept], score[kept]

    @staticmethod
    def overlap(one, other):
        low, high = torch.maximum(one[:2], other[:2]), torch.minimum(one[2:], other[2:])
        shared = (high - low).clamp(min=0).prod()
        return shared / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared)


def make():
    return Detector().eval()


def example():
    return (2 * torch.randn(6, 8),)


def calls():
    for number in range(3):
        yield f"fresh {number}", (2 * torch.randn(6, 8),)
    yield "equal features: one box", (torch.ones(6, 8),)
    yield "far apart", (20 * torch.randn(6, 8),)
