"""A text-to-speech net that repeats each letter by its duration: each call its own length."""

import torch
from torch import nn

KIND = "control flow"


class Regulator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(26, 16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))

    def forward(self, letters, durations):
        frames = torch.repeat_interleave(self.letters(letters), durations, dim=0)
        return self.body(frames).cumsum(0)


def make():
    return Regulator().eval()


def example():
    return torch.tensor([1, 2, 3, 4]), torch.tensor([2, 3, 1, 2])


def calls():
    letters = torch.tensor([5, 6, 7, 8])
    yield "the same sum", (letters, torch.tensor([1, 1, 1, 5]))
    yield "longer", (letters, torch.tensor([4, 4, 4, 4]))
    yield "one letter left out", (letters, torch.tensor([2, 0, 1, 5]))
    yield "all left out", (letters, torch.tensor([0, 0, 0, 0]))
    yield "refused: a negative duration", (letters, torch.tensor([2, -1, 5, 2]))
