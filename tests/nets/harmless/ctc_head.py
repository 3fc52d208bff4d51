"""A recogniser of lines of text: convolutions, columns as steps, a GRU, log chances of letters."""

import torch
from torch import nn

KIND = "harmless"


class LineReader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 1))),
        )
        self.gru = nn.GRU(24 * 4, 32, bidirectional=True)
        self.out = nn.Linear(64, 40)

    def forward(self, line):
        x = self.convs(line)
        x = x.permute(3, 0, 1, 2).flatten(2)
        hidden = self.gru(x)[0]
        return self.out(hidden).log_softmax(2)


def make():
    return LineReader().eval()


def example():
    return (torch.rand(1, 1, 16, 40),)


def calls():
    yield "fresh", (torch.rand(1, 1, 16, 40),)
    yield "black and white", (torch.rand(1, 1, 16, 40).round(),)
    yield "blank", (torch.zeros(1, 1, 16, 40),)
    yield "pixels up to 255", (255 * torch.rand(1, 1, 16, 40),)
