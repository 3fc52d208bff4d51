"""A function whose weights are a default of an argument and an attribute of the function itself."""

import torch

KIND = "process"

WEIGHTS = {"w": torch.arange(128.0).cos().view(16, 8)}


def scored(x, weights=WEIGHTS):
    return (x @ weights["w"] + scored.bias).tanh()


scored.bias = torch.zeros(8)


def make():
    return scored


def change(net):
    WEIGHTS["w"].fill_(0.25)
    scored.bias = torch.ones(8)


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "other weights", (torch.randn(4, 16), {"w": torch.ones(16, 8)})
    yield "another batch", (torch.randn(3, 16),)
    yield "zeros", (torch.zeros(4, 16),)
