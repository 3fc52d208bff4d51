"""A net whose weights the user changes through .data, numpy and other views, unseen by versions."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten())
        self.out = nn.Linear(64, 4)

    def forward(self, x):
        return self.out(self.stem(x))


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 3, 10),)


def updated(update):
    def use(net):
        update(net)
        return net(torch.linspace(-1, 1, 60).reshape(2, 3, 10))

    return use


def by_numpy(net):
    net.out.weight.detach().numpy()[:, ::3] = 0.25


def by_dlpack(net):
    torch.from_dlpack(net.stem[0].weight.detach()).mul_(-1)


def by_memory(net):
    memoryview(net.out.bias.detach().numpy())[3] = 7.0


def by_storage(net):
    net.stem[1].running_var.untyped_storage().copy_(torch.full((8,), 4.0).untyped_storage())


def calls():
    yield "fresh", (torch.randn(2, 3, 10),)
    yield ".data in place", updated(lambda net: net.stem[0].weight.data.add_(0.5))
    yield "numpy", updated(by_numpy)
    yield "dlpack", updated(by_dlpack)
    yield "one number through a memoryview", updated(by_memory)
    yield "the storage of a buffer", updated(by_storage)
    yield "the signs of a bias", updated(lambda net: net.out.bias.data.mul_(-1))
