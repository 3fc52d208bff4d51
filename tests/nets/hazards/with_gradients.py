"""A net that is called with gradients on: to its input, its weights, by hooks and checkpoints."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 12),)


def point():
    return torch.linspace(-1, 1, 24).reshape(2, 12).requires_grad_()


@torch.enable_grad()
def to_input(net):
    x = point()
    out = net(x)
    return (out.detach(), *torch.autograd.grad(out.square().sum(), x))


@torch.enable_grad()
def to_weights(net):
    net.zero_grad()
    net(point().detach()).square().sum().backward()
    gradients = [weight.grad.clone() for weight in net.parameters()]
    net.zero_grad()
    return gradients


@torch.enable_grad()
def frozen_weights(net):
    net.requires_grad_(False)
    try:
        x = point()
        out = net(x)
        return out.requires_grad, net(x.detach()).requires_grad, *torch.autograd.grad(out.sum(), x)
    finally:
        net.requires_grad_(True)


@torch.enable_grad()
def checkpointed(net):
    x = point()
    return torch.autograd.grad(checkpoint(net, x, use_reentrant=False).square().sum(), x)


@torch.enable_grad()
def second(net):
    x = point()
    (first,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    return torch.autograd.grad(first.square().sum(), x)


def off_again(net):
    return net(point()).requires_grad, net(point())


def calls():
    yield "without gradients", (torch.randn(2, 12),)
    for use in (to_input, to_weights, frozen_weights, checkpointed, second, off_again):
        yield use.__name__, use
