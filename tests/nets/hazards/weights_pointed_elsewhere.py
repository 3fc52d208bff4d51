"""A net whose weights the user points at other memory: .data = ..., set_, swaps, new parameters."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(12, 32), nn.LayerNorm(32)
        self.body, self.out = nn.Linear(32, 32), nn.Linear(32, 4)
        self.register_buffer("shift", torch.zeros(32))

    def forward(self, x):
        hidden = torch.relu(self.norm(self.stem(x)) + self.shift)
        return self.out(torch.tanh(self.body(hidden)))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def updated(update):
    def use(net):
        update(net)
        return net(torch.linspace(-1, 1, 36).reshape(3, 12))

    return use


def waves(*shape):
    return torch.linspace(-3, 3, int(torch.Size(shape).numel())).sin().reshape(shape)


def data(net):
    net.body.weight.data = waves(32, 32)


def later(net):
    net.body.weight[0] = 2.0  # in the new memory


def swapped(net):
    torch.utils.swap_tensors(net.out.weight, nn.Parameter(waves(4, 32)))


def replaced(net):
    net.stem.weight = nn.Parameter(waves(32, 12))


def as_buffer(net):
    net.shift = waves(32)


def turned(net):
    net.body.weight.data = waves(32, 32).mT


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield ".data = another tensor", updated(data)
    yield "and then in place", updated(later)
    yield "set_", updated(lambda net: net.norm.bias.data.set_(waves(32)))
    yield "swapped", updated(swapped)
    yield "a new parameter", updated(replaced)
    yield "a new buffer", updated(as_buffer)
    yield "other strides", updated(turned)
