"""Symbols read off frames by argmax, repeats and blanks dropped: frames of zeros are ties."""

import torch
from torch import nn

KIND = "indices"


class Collapse(nn.Module):
    def forward(self, scores):
        best = scores.argmax(-1)
        before = torch.nn.functional.pad(best[:, :-1], (1, 0), value=-1)
        keep = (best != before) & (best != 0)
        places = torch.where(keep, keep.long().cumsum(-1) - 1, 14)
        symbols = torch.full((2, 15), -1).scatter(1, places, best)[:, :14].contiguous()
        return symbols, keep.sum(-1), scores.log_softmax(-1).amax(-1).sum(-1)


def make():
    return Collapse().eval()


def example():
    return (torch.rand(2, 14, 6) + torch.eye(6)[torch.arange(14) % 5 + 1],)


def calls():
    yield "zeros", (torch.zeros(2, 14, 6),)
    yield "blanks", (torch.eye(6)[torch.zeros(2, 14, dtype=torch.long)],)
    yield "repeats", (torch.eye(6)[torch.arange(28).reshape(2, 14) // 3 % 6],)
    yield "levels", (torch.randint(0, 2, (2, 14, 6)).float(),)
    yield "NaN", (torch.full((2, 14, 6), float("nan")),)
