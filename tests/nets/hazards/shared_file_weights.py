"""A net whose weight is mapped from a file that others read and write: it stays as it is."""

import tempfile
from pathlib import Path

import torch
from torch import nn

KIND = "process"

FOLDER = tempfile.TemporaryDirectory()


def make():
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
    net._path = f"{FOLDER.name}/weight-{id(net)}"
    Path(net._path).write_bytes(net[0].weight.detach().numpy().tobytes())
    weight = torch.from_file(net._path, shared=True, size=64 * 32).view(64, 32)
    net[0].weight = nn.Parameter(weight, requires_grad=False)
    return net


def state(net):
    return Path(net._path).read_bytes()


def example():
    return (torch.randn(4, 32),)


def written(net):
    """Call the net before and after its file is written into."""
    before = net(torch.ones(4, 32))
    values = torch.frombuffer(bytearray(Path(net._path).read_bytes()), dtype=torch.float32)
    with Path(net._path).open("r+b") as file:
        file.write((values * 2).numpy().tobytes())
    return before, net(torch.ones(4, 32))


def calls():
    yield "fresh", (torch.randn(4, 32),)
    yield "another batch", (torch.randn(2, 32),)
    yield "a file that is written into", written
    yield "after this", lambda net: net(torch.full((4, 32), 0.5))
