"""A net that computes in inference mode: its outputs cannot be written into by the caller."""

import torch
from torch import nn

KIND = "form"


class Inference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    @torch.inference_mode()
    def forward(self, x):
        return self.net(x)


def make():
    return Inference().eval()


def example():
    return (torch.randn(4, 8),)


def trained(net):
    weight = torch.ones(4, 4, requires_grad=True)
    with torch.enable_grad():
        return (net(torch.ones(4, 8)) @ weight).sum()


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (x,)
    yield "kind of output", lambda net: net(x).is_inference()
    yield "with gradients on", lambda net: torch.enable_grad()(net)(x).requires_grad
    yield "refused: writing into the output", lambda net: net(x).add_(1)
    yield "refused: keeping it for a gradient", trained
