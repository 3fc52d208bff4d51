"""A net that draws noise from a generator of its own, which each call moves."""

import torch
from torch import nn

KIND = "state"


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out, self.generator = nn.Linear(48, 4), torch.Generator().manual_seed(1)

    def forward(self, x):
        return self.out(self.body(x)) + torch.randn(4, generator=self.generator)


def make():
    return Noisy().eval()


def example():
    return (torch.randn(3, 12),)


def state(net):
    return net.generator.get_state().tolist()


def seeded(net):
    net.generator.manual_seed(9)
    return [net(torch.ones(3, 12)) for _ in range(2)]


def calls():
    yield "two calls", lambda net: [net(torch.ones(3, 12)) for _ in range(2)]
    yield "seeded", seeded
    yield "one more", lambda net: net(torch.ones(3, 12))
