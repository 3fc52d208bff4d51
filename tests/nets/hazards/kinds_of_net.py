"""A net whose type callers ask for: it is still an instance of its class and of its bases."""

import torch
from torch import nn

KIND = "interface"


class Loadable:
    def loaded(self):
        return "loaded"


class Classifier(nn.Sequential, Loadable):
    version = 3

    @property
    def size(self):
        return self[0].in_features

    @classmethod
    def named(cls):
        return cls.__name__

    @staticmethod
    def doubled(x):
        return x * 2


def make():
    return Classifier(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def by_class(net):
    """Choose as a wrapper of nets does that knows some types."""
    if isinstance(net, nn.Sequential):
        return [type(module).__name__ for module in net]
    return "another kind"


def calls():
    yield "a module", lambda net: isinstance(net, nn.Module)
    yield "its class", lambda net: isinstance(net, Classifier)
    yield "its bases", lambda net: (isinstance(net, nn.Sequential), isinstance(net, Loadable))
    yield "another class", lambda net: isinstance(net, (nn.Linear, nn.ModuleList))
    yield "a choice by class", by_class
    yield "members of the class", lambda net: (net.version, net.size, net.named(), net.loaded())
    yield "a static method", lambda net: net.doubled(torch.ones(2))
    yield "the name of its class", lambda net: net.__class__.__name__
