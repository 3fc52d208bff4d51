"""A GRU that keeps its hidden state in an attribute between calls, until it is reset."""

import torch
from torch import nn

KIND = "state"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16))
        self.rnn, self.out = nn.GRU(16, 24), nn.Linear(24, 3)
        self.hidden = None

    def forward(self, chunk):
        out, self.hidden = self.rnn(self.stem(chunk), self.hidden)
        return self.out(out)


def make():
    return Recurrent().eval()


def example():
    return (torch.randn(4, 1, 8),)


def state(net):
    return net.hidden is None


def streamed(net):
    signal = torch.linspace(-3, 3, 96).reshape(12, 1, 8).cos()
    return [net(chunk) for chunk in signal.split(4)]


def restarted(net):
    net.hidden = None
    return streamed(net)


def calls():
    yield "three chunks", streamed
    yield "three more", streamed
    yield "from the start", restarted
