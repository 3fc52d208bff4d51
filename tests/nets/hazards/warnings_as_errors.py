"""A net in a process that turns all warnings into errors; it warns itself for some inputs."""

import warnings

import torch
from torch import nn

KIND = "process"

STATES = []

BEFORE = list(warnings.filters)


class Warned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        if len(x) > 4:
            warnings.warn("a large batch", stacklevel=2)
        return self.net(x)


def make():
    warnings.simplefilter("error")
    return Warned().eval()


def state(net):
    STATES.append([str(item) for item in warnings.filters])
    if len(STATES) == 2:  # the net was optimised
        change(net)
    return STATES[-1]


def example():
    return (torch.randn(4, 16),)


def warned(net):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net(torch.ones(5, 16))
    return [str(warning.message) for warning in caught]


def strict(net):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return net(torch.ones(5, 16))


def change(net):
    warnings.filters[:] = BEFORE


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "a small batch", (torch.randn(2, 16),)
    yield "a warning", warned
    yield "refused: a warning as an error", strict
