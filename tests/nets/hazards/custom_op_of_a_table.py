"""An op of the user's own that reads a dict which changes later."""

import torch
from torch import nn

KIND = "state"


SCALES = {"now": 2.0}


@torch.library.custom_op("passnet_hazards::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALES["now"]


@scaled.register_fake
def _(x):
    return torch.empty_like(x)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.head(scaled(x)))


def rescale(net, x):
    SCALES["now"] = 3.0
    try:
        return net(x)
    finally:
        SCALES["now"] = 2.0


def make():
    return Scaled().eval()


def example():
    return (torch.randn(4, 8),)


def calls():
    yield "other values", (torch.randn(4, 8),)
    yield "another scale", lambda net: rescale(net, torch.ones(4, 8))
