"""A net that returns one tensor several times, also in views; writing into one shows in all."""

import torch
from torch import nn

KIND = "form"


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        y = self.net(x)
        return [y, {"logits": y, "flat": y.view(-1)}, y[1:], (y, y.detach())]


def make():
    return Twice().eval()


def example():
    return (torch.randn(4, 16),)


def is_same(net):
    first, named, _, (again, detached) = net(torch.ones(4, 16))
    return first is named["logits"], first is again, first is detached


def written(net):
    outputs = net(torch.ones(4, 16))
    outputs[1]["flat"][0] = 5
    outputs[2].zero_()
    return outputs


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(2, 16),)
    yield "identity", is_same
    yield "writing", written
