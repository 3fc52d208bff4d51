"""A net whose parts callers prune, normalise, parametrise and quantise by functions of torch."""

import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

KIND = "interface"


class Half(nn.Module):
    def forward(self, weight):
        return weight * 0.5


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def value(net):
    return net(torch.linspace(-1, 1, 32).view(4, 8))


def pruned(net):
    layer = net.get_submodule("0")
    prune.l1_unstructured(layer, "weight", 0.5)
    inside, names = value(net), list(net.state_dict())
    prune.remove(layer, "weight")
    return inside, value(net), names


def parametrized(net):
    layer = net.get_submodule("2")
    parametrize.register_parametrization(layer, "weight", Half())
    inside = value(net)
    parametrize.remove_parametrizations(layer, "weight")
    return inside, value(net)


def normed(net):
    parametrizations.weight_norm(net.get_submodule("0"))
    before = value(net)
    net.get_submodule("0").parametrizations.weight.original0.mul_(2)
    return before, value(net)


def quantised(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, torch.qint8)
    return value(other), value(net)


def initialised(net):
    def fill(module):
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.bias, 0.25)

    net.apply(fill)
    return value(net)


def flattened(net):
    values = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(values * 2, net.parameters())
    return value(net)


def calls():
    yield "quantised", quantised
    yield "filled", initialised
    yield "as one vector", flattened
    yield "pruned", pruned
    yield "parametrised", parametrized
    yield "normed", normed
