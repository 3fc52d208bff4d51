"""A net that the user trains on after optimisation: a step with gradients, then evaluation."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.out = nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.stem(x))


def make():
    return Net().eval()


def example():
    return (torch.randn(6, 12),)


def trained(optimizer, **options):
    def use(net):
        steps = optimizer(net.parameters(), lr=0.1, **options)
        net.train()
        losses = []
        with torch.enable_grad():
            for step in range(2):
                loss = net(torch.linspace(-1, step, 72).reshape(6, 12).sin()).square().mean()
                steps.zero_grad()
                loss.backward()
                steps.step()
                losses.append(loss.detach())
        steps.zero_grad()
        net.eval()
        return losses, net(torch.linspace(-1, 1, 72).reshape(6, 12))

    return use


def calls():
    yield "fresh", (torch.randn(6, 12),)
    yield "two steps of SGD", trained(torch.optim.SGD)
    yield "two steps of Adam, fused", trained(torch.optim.Adam, fused=True)
    yield "two steps of AdamW, by lists", trained(torch.optim.AdamW, foreach=True)
