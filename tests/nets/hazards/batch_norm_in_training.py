"""A net with one batch norm left in training mode: each call normalises by its batch and counts."""

import torch
from torch import nn

KIND = "state"


def make():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
    ).eval()
    net[1].train()
    return net


def example():
    return (torch.randn(2, 3, 10, 10),)


def state(net):
    return int(net[1].num_batches_tracked), net[1].running_mean.tolist()


def adapted(net):
    return [net(scale * torch.linspace(-1, 1, 600).reshape(2, 3, 10, 10)) for scale in (1.0, 3.0)]


def evaluated(net):
    net.eval()
    return net(torch.ones(2, 3, 10, 10))


def calls():
    yield "two calls", adapted
    yield "two more", adapted
    yield "in evaluation mode", evaluated
