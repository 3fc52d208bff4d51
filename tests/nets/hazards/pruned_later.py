"""A net that the user prunes after optimisation, whose masks change, until it is made permanent."""

import torch
from torch import nn
from torch.nn.utils import prune

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)
        prune.l1_unstructured(self.out, "weight", 0.25)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    prune.l1_unstructured(net.stem, "weight", 0.5)


def updated(update):
    def use(net):
        update(net)
        return net(torch.linspace(-1, 1, 36).reshape(3, 12))

    return use


def calls():
    yield "half of a weight pruned", (torch.randn(3, 12),)
    yield "rows of the first mask", updated(lambda net: net.out.weight_mask[1].zero_())
    yield "the raw weight", updated(lambda net: net.out.weight_orig.mul_(2))
    yield "pruned further", updated(lambda net: prune.ln_structured(net.out, "weight", 0.5, 2, 0))
    yield "made permanent", updated(lambda net: prune.remove(net.out, "weight"))
    yield "and written", updated(lambda net: net.out.weight[0].fill_(1.0))
