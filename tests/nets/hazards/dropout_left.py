"""A net in evaluation mode with one dropout left on, as is done to sample: each call draws."""

import torch
from torch import nn

KIND = "process"


def make():
    net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.3), nn.Linear(32, 8), nn.Dropout(0.3))
    net.eval()
    net[1].train()
    return net


def example():
    return (torch.randn(4, 16),)


def sampled(net):
    torch.manual_seed(5)
    samples = torch.stack([net(torch.ones(2, 16)) for _ in range(20)])
    return samples.mean(0), samples.var(0), torch.rand(3)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(7, 16),)
    yield "samples", sampled
    yield "one draw", lambda net: net(torch.ones(4, 16)).unique().numel() > 1
