"""A net whose calls need gradients later, of its argument and of its weights, also of gradients."""

import torch
from torch import nn

KIND = "form"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def of_argument(net):
    x = torch.randn(4, 8, requires_grad=True)
    with torch.enable_grad():
        y = net(x)
        y.square().sum().backward()
    for weight in net.parameters():
        weight.grad = None
    return x.grad, y.requires_grad, y.grad_fn is not None


def of_weights(net):
    with torch.enable_grad():
        net(torch.randn(4, 8)).square().sum().backward()
    return [weight.grad for weight in net.parameters()]


def of_gradients(net):
    x = torch.randn(4, 8, requires_grad=True)
    with torch.enable_grad():
        [first] = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        [second] = torch.autograd.grad(first.square().sum(), x)
    return first.detach(), second


def forward_mode(net):
    return torch.func.jvp(net, (torch.ones(4, 8),), (torch.ones(4, 8),))


def calls():
    yield "a tensor that needs none, gradients on", lambda net: net(torch.ones(4, 8)).requires_grad
    yield "of the argument", of_argument
    yield "of the weights", of_weights
    yield "of gradients", of_gradients
    yield "forward mode", forward_mode
