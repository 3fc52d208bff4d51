"""A net that adds one of the tensors in a plain list, whose elements the user replaces."""

import torch
from torch import nn

KIND = "state"


class Prompted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.prompts = [torch.randn(24), torch.randn(24)]
        self.body = nn.Sequential(
            nn.LayerNorm(24), nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4)
        )

    def forward(self, x):
        return self.body(x + self.prompts[0] * self.prompts[-1])


def make():
    return Prompted().eval()


def example():
    return (torch.randn(3, 24),)


def change(net):
    net.prompts[0] = torch.linspace(-3, 3, 24)


def one_more(net):
    net.prompts.append(torch.linspace(2, -2, 24))
    return net(torch.ones(3, 24))


def calls():
    yield "the first replaced", (torch.randn(3, 24),)
    yield "one more at the end", one_more
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 72).reshape(3, 24))
