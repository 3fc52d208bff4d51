"""A bound method of a net that is not its `forward`; the net is changed and trained later."""

import torch
from torch import nn

KIND = "process"


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(16, 4), nn.Linear(4, 16)

    def encode(self, x, is_normed=False):
        code = torch.tanh(self.encoder(x))
        return code / code.norm(dim=-1, keepdim=True) if is_normed else code

    def forward(self, x):
        return self.decoder(self.encode(x))


def make():
    return Autoencoder().eval().encode


def change(encode):
    with torch.no_grad():
        encode.__self__.encoder.weight.fill_(0.125)


def example():
    return (torch.randn(4, 16),)


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x,)
    yield "normed", (x, True)
    yield "by name", {"x": x}
    yield "refused: fewer columns", (torch.randn(4, 4),)
