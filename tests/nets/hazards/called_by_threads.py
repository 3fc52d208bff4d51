"""A net that eight threads call at once, each with its own inputs: each gets its own outputs."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.out = nn.Linear(16, 64), nn.Linear(64, 8)
        self.body = nn.Sequential(nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU())

    def forward(self, x):
        return self.out(self.body(self.stem(x)))


def make():
    return Net().eval()


def example():
    return (torch.randn(4, 16),)


def at_once(net, num_threads=8, num_calls=25):
    start = Barrier(num_threads)

    def run(number):
        start.wait()
        with torch.no_grad():
            inputs = (torch.full((4, 16), number + call / num_calls) for call in range(num_calls))
            return torch.stack([net(x) for x in inputs])

    with ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(run, range(num_threads)))


def kept(net):
    first = net(torch.ones(4, 16))
    copy = first.clone()
    at_once(net, 2, 5)
    return first, copy


def calls():
    yield "one thread", (torch.randn(4, 16),)
    yield "eight threads", at_once
    yield "an output kept while others call", kept
