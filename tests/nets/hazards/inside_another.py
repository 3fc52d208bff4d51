"""A net that callers put into other modules, which then list, convert and train its weights."""

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def in_sequential(net):
    outer = nn.Sequential(net, nn.Softmax(-1))
    return outer(torch.ones(4, 8)), list(outer.state_dict())


def as_attribute(net):
    outer = nn.Module()
    outer.inner = net
    outer.train()
    modes = [module.training for module in net.modules()]
    outer.eval()
    return modes, [name for name, _ in outer.named_parameters()], outer.inner is net


def converted(net):
    outer = nn.ModuleList([net])
    outer.double()
    inside = net(torch.ones(4, 8).double())
    outer.float()
    return inside, net(torch.ones(4, 8))


def applied(net):
    names = []
    nn.ModuleList([net]).apply(lambda module: names.append(type(module).__name__))
    return names[:3]


def parallel(net):
    return nn.DataParallel(net)(torch.ones(4, 8))


def loaded(net):
    outer = nn.ModuleDict({"net": net})
    state = {name: torch.full_like(value, 0.25) for name, value in outer.state_dict().items()}
    outer.load_state_dict(state)
    return net(torch.ones(4, 8))


def calls():
    yield "in a Sequential", in_sequential
    yield "as an attribute", as_attribute
    yield "converted with it", converted
    yield "a function applied to all", applied
    yield "in parallel", parallel
    yield "loaded with it", loaded
