"""A net called in inference mode: its outputs are inference tensors there, and none outside."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 3)

    def forward(self, x):
        hidden = torch.tanh(self.norm(self.stem(x)))
        return self.out(hidden), hidden


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 12),)


def point():
    return torch.linspace(-1, 1, 24).reshape(2, 12)


def within(net):
    with torch.inference_mode():
        x = point()
        out, hidden = net(x)
    is_inference = [each.is_inference() for each in (x, out, hidden)]
    return is_inference, out.clone(), net(point())[0].is_inference()


def inputs_from_it(net):
    with torch.inference_mode():
        x = point()
    out, hidden = net(x)
    return out.is_inference(), out, hidden


def used_after(net):
    with torch.inference_mode():
        out, _ = net(point())
    try:
        out.add_(1)
    except RuntimeError as error:
        return type(error).__name__
    return out


def trained_on(net):
    out, _ = net(point())
    with torch.enable_grad():
        factor = torch.ones(3, requires_grad=True)
        (factor * out).sum().backward()
    return factor.grad


def calls():
    yield "outside", (torch.randn(2, 12),)
    for use in (within, inputs_from_it, used_after, trained_on):
        yield use.__name__, use
