"""A net whose first weight is mapped read-only from a file, as numpy does: it can only be read."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

KIND = "process"


def mapped(values):
    """Return a tensor in a mapped file, which is removed from its folder at once."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "weight.npy"
        np.save(path, values.numpy())
        return torch.from_numpy(np.load(path, mmap_mode="r"))


def make():
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
    net[0].weight = nn.Parameter(mapped(net[0].weight.detach()), requires_grad=False)
    return net


def example():
    return (torch.randn(4, 64),)


def calls():
    yield "fresh", (torch.randn(4, 64),)
    yield "zeros", (torch.zeros(4, 64),)
    yield "another batch", (torch.randn(9, 64),)
    yield "the weight", lambda net: net.get_parameter("0.weight").sum()
