"""A net that was made in inference mode: its weights count no updates, and can be written there."""

import torch
from torch import nn

KIND = "process"


def make():
    with torch.inference_mode():
        net = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    return net.eval()


def example():
    return (torch.randn(4, 16),)


def written(net):
    before = net(torch.ones(4, 16))
    with torch.inference_mode():
        for weight in net.parameters():
            weight.mul_(0.5)
    return before, net(torch.ones(4, 16))


def inside(net):
    with torch.inference_mode():
        return net(torch.ones(4, 16)).is_inference()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield (
        "an argument of inference mode",
        lambda net: net(torch.inference_mode()(torch.ones)(4, 16)),
    )
    yield "weights that change", written
    yield "called in inference mode", inside
    yield "refused: a gradient", lambda net: torch.enable_grad()(net)(torch.ones(4, 16)).backward()
