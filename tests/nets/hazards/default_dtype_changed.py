"""A net that makes tensors in torch's default dtype, called while that is float64."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 3)

    def forward(self, x):
        logits = self.out(torch.tanh(self.norm(self.stem(x))))
        return logits * torch.linspace(0.5, 2, 3), torch.arange(3) / 2


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 12),)


def point():
    return torch.linspace(-1, 1, 24, dtype=torch.float32).reshape(2, 12)


def in_float64(net):
    torch.set_default_dtype(torch.float64)
    try:
        return net(point())
    finally:
        torch.set_default_dtype(torch.float32)


def on_meta(net):
    with torch.device("meta"):
        return net.stem(torch.ones(2, 12, device="cpu")).device.type, torch.ones(1).device.type


def calls():
    yield "as usual", (torch.randn(2, 12),)
    yield "in float64", in_float64
    yield "as usual again", lambda net: net(point())
    yield "another default device", on_meta
