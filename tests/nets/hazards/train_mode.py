"""A net that is put in training mode, trained for two steps, and evaluated again."""

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)
    ).eval()


def example():
    return (torch.randn(6, 8),)


def in_training(net):
    same = net.train()
    output = net(torch.linspace(-1, 1, 48).view(6, 8))
    mode = net.training, net.get_submodule("3").training
    net.eval()
    return output, mode, net.training, same is net


def trained(net):
    optimizer = torch.optim.AdamW(net.parameters(), 0.1)
    net.train()
    with torch.enable_grad():
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.linspace(-1, 1, 48).view(6, 8)).square().sum().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    net.zero_grad()
    net.eval()
    return net(torch.ones(6, 8))


def part_in_training(net):
    net.get_submodule("1").train()
    output = net(torch.linspace(-1, 1, 48).view(6, 8))
    net.get_submodule("1").eval()
    return output, net(torch.ones(6, 8))


def by_attribute(net):
    net.training = True
    modes = [module.training for _, module in net.named_modules()]
    net.training = False
    return modes


def calls():
    yield "fresh", (torch.randn(6, 8),)
    yield "in training mode", in_training
    yield "trained", trained
    yield "a part in training mode", part_in_training
    yield "the mode by attribute", by_attribute
    yield "afterwards", lambda net: net(torch.full((6, 8), 0.5))
