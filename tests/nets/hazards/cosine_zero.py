"""Cosines and unit vectors of zeros: 0, not NaN; of tiny vectors as eps says."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Cosines(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Parameter(torch.randn(5, 16))

    def forward(self, x):
        unit = F.normalize(x, dim=-1)
        return (
            F.cosine_similarity(x.unsqueeze(1), self.classes, dim=-1),
            unit @ F.normalize(self.classes, dim=-1).t(),
            F.normalize(x, p=1.0, dim=-1, eps=1e-3),
            F.pairwise_distance(x, self.classes[:1]),
        )


def make():
    return Cosines().eval()


def example():
    return (torch.rand(6, 16),)


def calls():
    yield "zeros", (torch.zeros(6, 16),)
    x = torch.randn(6, 16)
    x[2] = 0.0
    yield "a row of zeros", (x.clone(),)
    for scale in (1e-6, 1e-10, 1e-16, 1e10):
        yield f"of {scale:g}", (scale * x,)
    x[3, 3], x[4, 4] = float("inf"), float("nan")
    yield "an infinity and a NaN", (x,)
