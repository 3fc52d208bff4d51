"""A net that rounds unless gradients are on, then adds the rounding's straight-through gradient."""

import torch
from torch import nn

KIND = "control flow"


class StraightThrough(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 8), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 12))

    def forward(self, x):
        code = self.encoder(x)
        signs = torch.where(code > 0, 1.0, -1.0).to(code.dtype)
        if torch.is_grad_enabled():
            return self.decoder(code + (signs - code).detach()), code
        return self.decoder(signs), signs


def make():
    return StraightThrough().eval()


def example():
    return (torch.randn(4, 12),)


def gradients(net):
    with torch.enable_grad():
        x = torch.linspace(-2, 2, 48).reshape(4, 12).requires_grad_()
        decoded, code = net(x)
        (gradient,) = torch.autograd.grad(decoded.square().sum(), x)
    return decoded, code, gradient


def without_weights(net):
    net.requires_grad_(False)
    try:
        with torch.enable_grad():
            return net(torch.linspace(-1, 1, 48).reshape(4, 12))
    finally:
        net.requires_grad_(True)


def calls():
    yield "without gradients", (torch.randn(4, 12),)
    yield "with gradients", gradients
    yield "gradients on, and nothing needs one", without_weights
