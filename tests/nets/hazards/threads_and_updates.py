"""A net that threads call between updates of its weights by the main thread: none is missed."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(16, 64), nn.LayerNorm(64), nn.Linear(64, 8)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(4, 16),)


def run(net, number):
    with torch.inference_mode(number % 2 == 0), torch.no_grad():
        return net(torch.full((4, 16), float(number))).clone()


def updated(net):
    outputs = []
    with ThreadPoolExecutor(3) as pool:
        for step in range(4):
            net.out.weight.data.mul_(-1.1)
            net.stem.bias.add_(0.1 * step)
            outputs += [run(net, 1), *pool.map(run, [net] * 3, range(3))]
    return [output.detach() + 0 for output in outputs]


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "updates between calls of threads", updated
    yield "and again", updated
