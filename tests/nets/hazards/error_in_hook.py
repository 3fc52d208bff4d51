"""A net with a hook that refuses some inputs, and one that must run even when a call fails."""

import torch
from torch import nn

KIND = "process"


class Guarded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.ended = 0
        self.register_forward_pre_hook(self.check)
        self.register_forward_hook(self.end, always_call=True)

    @staticmethod
    def check(module, given):
        if len(given[0]) > 8:
            raise ValueError("at most 8 rows")

    @staticmethod
    def end(module, given, output):
        module.ended += 1

    def forward(self, x):
        return self.net(x)


def make():
    return Guarded().eval()


def state(net):
    return net.ended


def example():
    return (torch.randn(4, 8),)


def counted(net):
    before = net.ended
    net(torch.ones(4, 8))
    try:
        net(torch.ones(9, 8))
    except ValueError as error:
        return str(error), net.ended - before
    return "no error", net.ended - before


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "fewer rows", (torch.randn(2, 8),)
    yield "refused: too many rows", (torch.randn(9, 8),)
    yield "how often it ended", counted
