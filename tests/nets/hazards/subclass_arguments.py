"""Arguments of a subclass of Tensor, which survives a call, or has its own rules within it."""

import torch
from torch import nn

KIND = "form"


class Metres(torch.Tensor):
    pass


class Doubled(torch.Tensor):
    """A tensor whose sums count twice."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        value = super().__torch_function__(func, types, args, kwargs or {})
        return value * 2 if func in (torch.add, torch.Tensor.add) else value


class Sums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        return torch.add(self.net(x), x)


def make():
    return Sums().eval()


def example():
    return (torch.randn(4, 8),)


def typed(net):
    y = net(torch.ones(4, 8).as_subclass(Metres))
    return type(y).__name__, y.as_subclass(torch.Tensor)


def calls():
    x = torch.randn(4, 8)
    yield "a type without rules", typed
    yield "a type with rules", lambda net: net(x.as_subclass(Doubled)).as_subclass(torch.Tensor)
    yield "a parameter", lambda net: net(nn.Parameter(x, requires_grad=False))
    yield "a buffer", lambda net: net(nn.Buffer(x))
