"""A net that callers keep in sets, dicts and weak references, and compare with itself."""

import gc
import weakref

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def weak(net):
    reference = weakref.ref(net)
    gc.collect()
    return reference() is net, reference()(torch.ones(4, 8))


def in_dict(net):
    table = {net: "first", make(): "second"}
    return table[net], len(table), net in {net}


def grown(net):
    """Count the objects that a hundred calls leave."""
    net(torch.ones(4, 8))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        net(torch.ones(4, 8))
    gc.collect()
    return len(gc.get_objects()) - before < 50


def freed(net):
    """Return whether arguments and outputs live on after a call."""
    x = torch.ones(4, 8)
    y = net(x)
    references = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    return [reference() is None for reference in references]


def calls():
    yield "a weak reference", weak
    yield "a key", in_dict
    yield "equality", lambda net: (net == net, net != net, net == make())
    yield "objects that are left", grown
    yield "arguments and outputs that are freed", freed
