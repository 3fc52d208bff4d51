"""A net that checks its ids in eager mode alone: ids beyond the words must raise in each call."""

import torch
from torch import nn

KIND = "control flow"


class Checked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(64, 32)  # more rows than words, as for a product of sizes
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5))

    def forward(self, ids):
        if not torch.compiler.is_compiling() and not torch.jit.is_tracing() and ids.max() >= 60:
            raise ValueError(f"id {int(ids.max())} is none of 60 words")
        return self.body(self.words(ids).mean(1))


def make():
    return Checked().eval()


def example():
    return (torch.randint(0, 60, (3, 10)),)


def calls():
    yield "words", (torch.randint(0, 60, (3, 10)),)
    yield "the last word", (torch.full((3, 10), 59),)
    yield "refused: a row that is no word", (torch.full((3, 10), 60),)
    yield "refused: one id too large", (torch.arange(34, 64).reshape(3, 10),)
