"""A net that appends its features to a list that it is given, and takes an entry out of a dict."""

import torch
from torch import nn

KIND = "form"


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, features=None, options=None):
        scale = options.pop("scale", 1.0) if options else 1.0
        for layer in self.layers:
            x = torch.relu(layer(x)) * scale
            if features is not None:
                features.append(x)
        return x


def make():
    return Features().eval()


def example():
    return torch.randn(4, 8), [], {"scale": 2.0}


def filled(net):
    features, options = [], {"scale": 3.0, "rest": 1}
    first = net(torch.ones(4, 8), features, options)
    second = net(torch.zeros(4, 8), features, options)
    return first, second, len(features), list(options), features[2] is first


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (x, [], {"scale": 2.0})
    yield "a list that holds a tensor", (x, [x], {"scale": 2.0})
    yield "no list", (x,)
    yield "no scale", (x, [], {})
    yield "two calls", filled
