"""Products that are returned transposed; callers transpose them back and take a flat view."""

import torch
from torch import nn

KIND = "form"


class Transposed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(32, 64), nn.Linear(64, 24)

    def forward(self, x):
        y = self.last(torch.relu(self.hidden(x)))
        return y.mT, (y @ y.mT).transpose(0, 1), y.movedim(-1, 0)


def make():
    return Transposed().eval()


def example():
    return (torch.randn(2, 8, 32),)


def calls():
    x = torch.randn(2, 8, 32)
    yield "fresh", (x,)
    yield "an argument that is transposed", (torch.randn(2, 32, 8).mT,)
    yield (
        "views of all three",
        lambda net: [
            net(x)[0].mT.view(-1),
            net(x)[1].transpose(0, 1).view(-1),
            net(x)[2].movedim(0, -1).view(-1),
        ],
    )
    yield "refused: a view of the product", lambda net: net(x)[0].view(-1)
