"""A recurrent net with the batch first: its outputs are turned views of what lies time by time."""

import torch
from torch import nn

KIND = "form"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x, state=None):
        y, state = self.lstm(x, state)
        return y, state, state[0][-1]


def make():
    return Recurrent().eval()


def example():
    return (torch.randn(2, 5, 8),)


def stepped(net):
    state, outputs = None, []
    for step in torch.ones(2, 4, 8).split(2, dim=1):
        y, state, _ = net(step, state)
        outputs.append(y)
    return outputs, state


def calls():
    x = torch.randn(2, 5, 8)
    yield "fresh", (x,)
    yield "one sequence", (torch.randn(1, 7, 8),)
    yield "strides", lambda net: list(net(x)[0].stride())
    yield "time by time", lambda net: net(x)[0].transpose(0, 1).reshape(-1)
    yield "states that are handed on", stepped
    yield "refused: no batch and a state for one", (x[0], (torch.zeros(4, 2, 8),) * 2)
