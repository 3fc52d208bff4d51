"""A net stacked with one that was not optimised: torch.func asks for nets of one `type`."""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def ensemble(net):
    weights, _ = stack_module_state([net, make()])
    return vmap(lambda weights: functional_call(net, weights, (torch.ones(4, 8),)))(weights)


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "an ensemble", ensemble
