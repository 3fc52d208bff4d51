"""A net that callers use in inference mode for some calls: only those return inference tensors."""

import torch
from torch import nn

KIND = "form"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def inside(net):
    with torch.inference_mode():
        output = net(torch.ones(4, 8))
        output += 1
    return output.is_inference(), output.clone()


def argument_of_it(net):
    with torch.inference_mode():
        x = torch.ones(4, 8)
    output = net(x)
    output += 1
    return output.is_inference(), output


def written(net):
    with torch.inference_mode():
        output = net(torch.ones(4, 8))
    return output.mul_(2)


def trained(net):
    weight = torch.ones(4, 1, requires_grad=True)
    with torch.enable_grad():
        (net(torch.ones(4, 8)).detach() @ weight).sum().backward()
    return weight.grad


def calls():
    yield "outside", lambda net: net(torch.ones(4, 8)).is_inference()
    yield "inside", inside
    yield "an argument of it", argument_of_it
    yield "outside again", lambda net: net(torch.ones(4, 8)).add_(1)
    yield "an output that is kept for a gradient", trained
    yield "refused: writing outside into what came from inside", written
