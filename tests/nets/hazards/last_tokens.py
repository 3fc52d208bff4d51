"""The state of the last token by length: a length of 0 counts from the end, as in eager PyTorch."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(12)
        self.rnn = nn.GRU(8, 12, batch_first=True)

    def forward(self, x, lengths):
        h, _ = self.rnn(x)
        rows = torch.arange(x.shape[0])
        last = h[rows, lengths - 1]
        mask = torch.arange(x.shape[1]) < lengths.unsqueeze(-1)
        return self.tower(last), (h * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(-1)


def make():
    return Last().eval()


def example():
    return torch.rand(3, 7, 8), torch.tensor([7, 6, 5])


def calls():
    x = torch.randn(3, 7, 8)
    yield "short", (x, torch.tensor([1, 2, 1]))
    yield "an empty one", (x, torch.tensor([0, 7, 3]))
    yield "negative", (x, torch.tensor([-2, -6, 3]))
    yield "refused: too long", (x, torch.tensor([8, 1, 1]))
    yield "refused: by 2^32", (x, torch.tensor([2**32 + 1, 1, 1]))
