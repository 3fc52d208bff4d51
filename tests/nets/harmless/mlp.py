"""A multilayer perceptron."""

import torch
from torch import nn

KIND = "harmless"


def make():
    return nn.Sequential(
        nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)
    ).eval()


def example():
    return (torch.randn(8, 64),)


def calls():
    yield "fresh", (torch.randn(8, 64),)
    yield "large", (100 * torch.randn(8, 64),)
    yield "zeros", (torch.zeros(8, 64),)
