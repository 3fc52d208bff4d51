"""An autoencoder whose decoder's weight is a transposed view of its encoder's memory."""

import torch
from torch import nn

KIND = "state"


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(16, 24), nn.Linear(24, 16)
        self.decoder.weight = nn.Parameter(self.encoder.weight.detach().mT)
        self.norm = nn.LayerNorm(24)

    def forward(self, x):
        return self.decoder(torch.relu(self.norm(self.encoder(x))))


def make():
    return Autoencoder().eval()


def example():
    return (torch.randn(3, 16),)


def scaled(net):
    net.encoder.weight.mul_(-2)
    return net(torch.ones(3, 16))


def by_decoder(net):
    net.decoder.weight[0] = 1.0
    return net(torch.ones(3, 16)), net.encoder.weight[:, 0].clone()


def untied(net):
    net.decoder.weight.data = net.decoder.weight.data.clone()
    net.encoder.weight.add_(0.1)
    return net(torch.ones(3, 16))


def calls():
    yield "fresh", (torch.randn(3, 16),)
    yield "the encoder scaled", scaled
    yield "written through the decoder", by_decoder
    yield "untied", untied
