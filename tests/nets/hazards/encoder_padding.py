"""A transformer encoder with a padding mask: the mask of the example holds no padding."""

import torch
from torch import nn

KIND = "values"


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 3)

    def forward(self, x, padding):
        h = self.encoder(x, src_key_padding_mask=padding)
        return self.head(h.mean(1))


def make():
    return Encoder().eval()


def example():
    return torch.rand(3, 10, 32), torch.zeros(3, 10, dtype=torch.bool)


def calls():
    x, padding = torch.randn(3, 10, 32), torch.zeros(3, 10, dtype=torch.bool)
    padding[1, 6:] = True
    yield "one row padded", (x, padding.clone())
    padding[0, 9], padding[2, 3:] = True, True
    yield "all rows padded", (x, padding.clone())
    padding[1] = True
    yield "a row of padding alone", (x, padding)
