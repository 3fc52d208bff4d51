"""A bfloat16 net, a dtype that numpy lacks; bfloat16 comes out, and its sums are rounded so."""

import torch
from torch import nn

KIND = "process"


def make():
    net = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.RMSNorm(64), nn.Linear(64, 16))
    return net.eval().bfloat16()


def example():
    return (torch.randn(8, 32).bfloat16(),)


def calls():
    yield "fresh", (torch.randn(8, 32).bfloat16(),)
    yield "another batch", (torch.randn(3, 32).bfloat16(),)
    yield "in float32", lambda net: net(torch.ones(8, 32).bfloat16()).float().dtype.itemsize
    yield "autocast", lambda net: torch.autocast("cpu")(net)(torch.ones(8, 32))
    yield "refused: float32", (torch.randn(8, 32),)
