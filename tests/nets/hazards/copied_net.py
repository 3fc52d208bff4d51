"""A net that is copied by the caller, deeply and not; a deep copy's changes stay its own."""

import copy

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def deep(net):
    other = copy.deepcopy(net)
    other.get_parameter("0.weight").data.zero_()
    return other(torch.ones(4, 8)), net(torch.ones(4, 8))


def shallow(net):
    other = copy.copy(net)
    other.get_parameter("2.bias").data.add_(1)
    return other(torch.ones(4, 8)), net(torch.ones(4, 8))


def in_a_list(net):
    first, second = copy.deepcopy([net, net])
    return first is second, first(torch.ones(4, 8))


def averaged(net):
    other = torch.optim.swa_utils.AveragedModel(net)
    net.get_parameter("2.bias").data.add_(1)
    other.update_parameters(net)
    return other(torch.ones(4, 8)), list(other.state_dict())


def calls():
    yield "deep", deep
    yield "shallow", shallow
    yield "in a list", in_a_list
    yield "averaged", averaged
    yield "afterwards", lambda net: net(torch.ones(4, 8))
