"""A net of any number of tensors, by position and by name: all of them are summed, names count."""

import torch
from torch import nn

KIND = "form"


class Variadic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, *tensors, **named):
        total = sum(self.net(tensor) for tensor in tensors)
        for number, (name, tensor) in enumerate(named.items()):
            total = total + (number + len(name)) * tensor
        return total


def make():
    return Variadic().eval()


def example():
    return {"left": torch.randn(4, 8), "right": torch.randn(4, 8)}


def calls():
    a, b, c = torch.randn(3, 4, 8)
    yield "another order", {"right": a, "left": b}
    yield "other names", {"top": a, "bottom": b}
    yield "one more", {"left": a, "right": b, "top": c}
    yield "by position", (a, b, c)
    yield "one twice", (a, a)
    yield "both", lambda net: net(a, b, left=c)
    yield "none", ()
