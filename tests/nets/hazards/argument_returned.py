"""A net that returns its argument besides a result; it is the very tensor that was given."""

import torch
from torch import nn

KIND = "form"


class Returned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x, mask):
        return {"x": x, "y": self.net(x) * mask, "mask": mask}


def make():
    return Returned().eval()


def example():
    return torch.randn(4, 16), torch.ones(4, 1)


def is_same(net):
    x, mask = torch.randn(4, 16), torch.ones(4, 1)
    outputs = net(x, mask)
    return outputs["x"] is x, outputs["mask"] is mask, outputs["y"] is x


def written(net):
    x = torch.randn(4, 16)
    outputs = net(x, torch.ones(4, 1))
    outputs["x"].zero_()
    return x, outputs["y"]


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x, torch.zeros(4, 1))
    yield "identity", is_same
    yield "writing into the output writes into the argument", written
    yield "one tensor twice", (x, x)
