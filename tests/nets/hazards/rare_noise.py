"""A net that draws a number in each call and adds noise if it is small: few calls show it."""

import torch
from torch import nn

KIND = "state"


class Rare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        noise = torch.where(torch.rand(()) < 0.001, 1.0, 0.0)
        return self.out(self.body(x)) + noise


def make():
    return Rare().eval()


def example():
    return (torch.randn(3, 12),)


def drawn(net):
    torch.manual_seed(11)
    returned = [net(torch.ones(3, 12))[0, 0] for _ in range(3000)]
    return torch.stack(returned), torch.rand(2)


def calls():
    yield "fresh", lambda net: [net(torch.linspace(-1, 1, 36).reshape(3, 12)), torch.rand(2)]
    yield "3,000 calls", drawn
    yield "one more", lambda net: [net(torch.ones(3, 12)), torch.rand(2)]
