"""A function that reads weights of its file, which are updated and replaced later."""

import torch
from torch.nn import functional

KIND = "process"

WEIGHT = (torch.arange(128.0).sin()).view(8, 16)
SCALES = {"out": torch.ones(8)}


def scored(x):
    return functional.linear(x, WEIGHT).tanh() * SCALES["out"]


def make():
    return scored


def state(net):
    return WEIGHT.tolist(), SCALES["out"].tolist()


def change(net):
    WEIGHT.fill_(0.25)
    SCALES["out"] = torch.full((8,), 3.0)


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "zeros", (torch.zeros(4, 16),)
