"""A net that creates tensors as it runs, of torch's default dtype and device at this moment."""

import torch
from torch import nn

KIND = "process"


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(16), requires_grad=False)

    def forward(self, x):
        places = torch.linspace(0, 1, x.shape[-1])
        return (x + places) * self.scale, torch.zeros(3), torch.tensor([0.5])


def make():
    return Positions().eval()


def example():
    return (torch.randn(4, 16),)


def in_float64(net):
    torch.set_default_dtype(torch.float64)
    try:
        return net(torch.ones(4, 16).float())
    finally:
        torch.set_default_dtype(torch.float32)


def on_meta(net):
    with torch.device("meta"):
        return net(torch.ones(4, 16, device="cpu"))


def default_meta(net):
    torch.set_default_device("meta")
    try:
        return net(torch.ones(4, 16, device="cpu"))
    finally:
        torch.set_default_device(None)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "float64 by default", in_float64
    yield "float32 again", (torch.randn(4, 16),)
    yield "refused: another device in a block", on_meta
    yield "refused: another default device", default_meta
