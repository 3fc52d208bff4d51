"""Softmax of rows with infinities: a row that is minus infinity throughout is NaN."""

import torch
from torch import nn

KIND = "values"


class Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.7))
        self.softmin = nn.Softmin(dim=-1)

    def forward(self, scores):
        scores = scores * self.temperature
        return (
            scores.softmax(-1),
            scores.log_softmax(-1),
            scores.softmax(0),
            self.softmin(scores),
            scores.softmax(-1).nan_to_num(-1.0),
        )


def make():
    return Scores().eval()


def example():
    return (torch.rand(5, 20),)


def calls():
    infinity = float("inf")
    scores = torch.randn(5, 20)
    scores[1, 3:] = -infinity
    yield "some masked", (scores.clone(),)
    scores[2] = -infinity
    yield "a row masked", (scores.clone(),)
    scores[3, 4], scores[4, 0] = infinity, float("nan")
    yield "an infinity and a NaN", (scores,)
    yield "all masked", (torch.full((5, 20), -infinity),)
    yield "far apart", (1e4 * torch.randn(5, 20),)
