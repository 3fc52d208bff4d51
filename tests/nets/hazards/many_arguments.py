"""A net of 64 tensors in a list and as many outputs; one of them is another at some calls."""

import torch
from torch import nn

KIND = "form"


class Many(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList(torch.full((4,), 1 + n / 64) for n in range(64))

    def forward(self, tensors):
        return [torch.tanh(x * scale) for x, scale in zip(tensors, self.scales, strict=True)]


def make():
    return Many().eval()


def tensors():
    return [torch.randn(2, 4) for _ in range(64)]


def example():
    return (tensors(),)


def order(net):
    given = [torch.full((2, 4), n / 64) for n in range(64)]
    return [float(output[0, 0]) > 0 for output in net(given)], net(given[::-1])[0]


def calls():
    given = tensors()
    yield "fresh", (tensors(),)
    yield "one of another shape", ([*given[:40], torch.randn(3, 4), *given[41:]],)
    yield "one in float64", ([*given[:63], torch.randn(2, 4).double()],)
    yield "one that comes twice", ([given[1], *given[1:]],)
    yield "a tuple", (tuple(given),)
    yield "the order", order
    yield "refused: one too few", (given[:63],)
