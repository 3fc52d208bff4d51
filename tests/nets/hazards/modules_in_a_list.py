"""A net with layers in a plain list, not registered: the user updates their weights."""

import torch
from torch import nn

KIND = "state"


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.out = nn.Linear(12, 24), nn.Linear(24, 4)
        self.layers = [nn.Linear(24, 24).eval() for _ in range(3)]
        self.norm = nn.LayerNorm(24)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = self.norm(torch.nn.functional.gelu(layer(x)))
        return self.out(x)


def make():
    return Hidden().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    with torch.no_grad():
        net.layers[1].weight.mul_(3)


def replaced(net):
    layer = nn.Linear(24, 24)
    layer.weight.copy_(torch.linspace(-1, 1, 576).reshape(24, 24).sin())
    layer.bias.zero_()
    net.layers[0] = layer
    return net(torch.ones(3, 12))


def hooked(net):
    net.layers[2].register_forward_hook(lambda module, args, output: -output)
    return net(torch.ones(3, 12))


def calls():
    yield "a weight scaled", (torch.randn(3, 12),)
    yield "a layer replaced", replaced
    yield "a hook added", hooked
