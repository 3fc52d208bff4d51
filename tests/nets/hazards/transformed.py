"""A net under torch.func: with other weights, mapped over a batch, and in Jacobians."""

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, vmap

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def with_weights(net):
    weights = {name: weight * 0.5 for name, weight in net.named_parameters()}
    return functional_call(net, weights, (torch.ones(4, 8),)), net(torch.ones(4, 8))


def in_part(net):
    return functional_call(net, {"2.bias": torch.ones(4)}, torch.ones(4, 8))


def gradients(net):
    weights = dict(net.named_parameters())

    def loss(weights):
        return functional_call(net, weights, (torch.ones(4, 8),)).square().sum()

    return grad(loss)(weights)


def calls():
    x = torch.randn(4, 8)
    yield "other weights", with_weights
    yield "one other weight", in_part
    yield "mapped", lambda net: vmap(net)(x)
    yield "mapped over columns", lambda net: vmap(net, in_dims=1)(torch.ones(8, 4))
    yield "a Jacobian", lambda net: jacrev(net)(x[0]).detach()
    yield "gradients", gradients
