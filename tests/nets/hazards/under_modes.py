"""A net called under modes of torch that see or change its ops: each op is seen, as in eager."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

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


class Sines(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return (torch.sin if func is torch.tanh else func)(*args, **(kwargs or {}))


class Zeroed(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return torch.zeros_like(out) if func is torch.ops.aten.tanh.default else out


def point():
    return torch.linspace(-1, 1, 24).reshape(2, 12)


def counted(net):
    with FlopCounterMode(display=False) as counter:
        returned = net(point())
    return returned, counter.get_total_flops()


def with_sines(net):
    with Sines():
        return net(point())


def with_zeros(net):
    with Zeroed():
        return net(point())


def calls():
    yield "no mode", (torch.randn(2, 12),)
    for use in (counted, with_sines, with_zeros):
        yield use.__name__, use
    yield "no mode again", lambda net: net(point())
