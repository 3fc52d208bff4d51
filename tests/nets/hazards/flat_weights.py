"""A net whose weights are views of one flat tensor, which the user updates as a whole."""

import torch
from torch import nn

KIND = "process"


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        weights = list(self.net.parameters())
        self.flat = torch.cat([weight.detach().flatten() for weight in weights])
        start = 0
        for weight in weights:
            stop = start + weight.numel()
            weight.data = self.flat[start:stop].view(weight.shape)
            start = stop

    def forward(self, x):
        return self.net(x)


def make():
    return Flat().eval()


def state(net):
    storages = {weight.untyped_storage().data_ptr() for weight in net.parameters()}
    return storages == {net.flat.untyped_storage().data_ptr()}, net.flat.tolist()


def example():
    return (torch.randn(4, 8),)


def updated(net):
    before = net(torch.ones(4, 8))
    net.flat.mul_(0.5)
    return before, net(torch.ones(4, 8))


def by_weight(net):
    net.net[2].bias.data.add_(1)
    return net(torch.ones(4, 8)), net.flat[-4:].clone()


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "updated as a whole", updated
    yield "updated by a weight", by_weight
    yield "afterwards", lambda net: net(torch.full((4, 8), 0.5))
