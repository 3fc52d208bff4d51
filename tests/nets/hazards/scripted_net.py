"""A whole net as a ScriptModule with a loop over the input's rows, and with weights that change."""

import torch
from torch import nn

KIND = "process"


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        state = torch.zeros(x.shape[1], 8)
        for row in x:
            state = self.cell(row, state)
        return self.head(state)


def make():
    return torch.jit.script(Rows().eval())


def example():
    return (torch.randn(3, 2, 8),)


def changed(net):
    before = net(torch.ones(3, 2, 8))
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(0.5)
    return before, net(torch.ones(3, 2, 8))


def calls():
    yield "fresh", (torch.randn(3, 2, 8),)
    yield "more rows", (torch.randn(6, 2, 8),)
    yield "no row", (torch.randn(0, 2, 8),)
    yield "weights that change", changed
    yield "parameters", lambda net: [name for name, _ in net.named_parameters()]
