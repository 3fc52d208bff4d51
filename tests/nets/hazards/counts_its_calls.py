"""A net that counts its calls in an attribute without using the count: the user reads it."""

import torch
from torch import nn

KIND = "state"


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out, self.num_calls, self.num_rows = nn.Linear(48, 4), 0, 0

    def forward(self, x):
        self.num_calls += 1
        self.num_rows += len(x)
        return self.out(self.body(x))


def make():
    return Counted().eval()


def example():
    return (torch.randn(3, 12),)


def state(net):
    return net.num_calls


def read(net):
    return net(torch.ones(3, 12)), net.num_calls, net.num_rows


def calls():
    yield "one more", (torch.randn(3, 12),)
    yield "read", read
    yield "read again", read
