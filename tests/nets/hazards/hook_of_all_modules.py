"""A net that is called while the process has hooks on all modules: they change its values."""

import torch
from torch import nn
from torch.nn.modules import module as of_all

KIND = "state"


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.out = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.out(self.first(x))


def make():
    return Stack().eval()


def example():
    return (torch.randn(3, 12),)


def clipped(net):
    def clip(layer, args, output):
        return output.clamp(-0.1, 0.1) if isinstance(layer, nn.Linear) else output

    with of_all.register_module_forward_hook(clip):
        return net(torch.ones(3, 12))


def shifted(net):
    def shift(layer, args):
        return (args[0] + 1,) if isinstance(layer, nn.GELU) else args

    with of_all.register_module_forward_pre_hook(shift):
        return net(torch.ones(3, 12))


def noted(net):
    names = []

    def note(layer, args, output):
        names.append(type(layer).__name__)

    with of_all.register_module_forward_hook(note):
        returned = net(torch.ones(3, 12))
    return returned, [name for name in names if name in ("Linear", "GELU", "LayerNorm")]


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "a hook after each linear layer", clipped
    yield "a hook before each activation", shifted
    yield "a hook that notes the layers", noted
    yield "without hooks", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
