"""Class targets of a cross entropy: some or all ignored (NaN); out of range they must raise."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "indices"


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(12, 5)

    def forward(self, x, target):
        scores = self.head(x)
        return (
            F.cross_entropy(scores, target),
            F.cross_entropy(scores, target, reduction="none", label_smoothing=0.1),
            F.nll_loss(scores.log_softmax(-1), target, reduction="sum"),
            F.cross_entropy(scores, target.clamp(min=0), ignore_index=1),
        )


def make():
    return Loss().eval()


def example():
    return torch.rand(6, 12), torch.tensor([0, 2, 3, 0, 2, 3])


def calls():
    x, target = torch.randn(6, 12), torch.tensor([0, 1, 2, 3, 4, 1])
    yield "some ignored", (x, target)
    yield "-100 is ignored", (x, torch.tensor([0, -100, 2, -100, 4, 1]))
    yield "all ignored", (x, target * 0 - 100)
    yield "all ones", (x, target * 0 + 1)
    for wrong in (5, -1, 2**32, 100):
        yield f"refused: target {wrong}", (x, target.index_fill(0, torch.tensor([2]), wrong))
