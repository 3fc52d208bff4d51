"""A net whose arguments are named as those of a wrapper, an exporter, or Python's own words are."""

import torch
from torch import nn

KIND = "form"


class Names(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("input", torch.full((8,), 2.0))

    def forward(self, args, kwargs, input, net=None, input_1=0.5, **others):  # noqa: A002
        y = self.net(args) - kwargs * self.input + input * input_1
        for name, value in others.items():
            y = y + len(name) * value
        return y if net is None else y * net


def make():
    return Names().eval()


def example():
    x, y, z = torch.randn(3, 4, 8)
    return {"args": x, "kwargs": y, "input": z, "net": torch.ones(8)}


def calls():
    x, y, z = torch.randn(3, 4, 8)
    yield "another order", {"input": z, "net": torch.zeros(8), "kwargs": y, "args": x}
    yield "swapped", {"args": y, "kwargs": x, "input": z, "net": torch.ones(8)}
    yield "by position", (x, y, z)
    yield "further names", {"args": x, "kwargs": y, "input": z, "input_0": x, "output": y}
    yield "names of weights", {"args": x, "kwargs": y, "input": z, "weight": x, "p_net_weight": y}
    yield "words of Python", {"args": x, "kwargs": y, "input": z, "lambda": x, "": y, "a b": z}
    yield "refused: the net itself", {"self": x, "args": x, "kwargs": y, "input": z}
