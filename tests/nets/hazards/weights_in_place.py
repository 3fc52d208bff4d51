"""A net whose weights the user updates in place, by all of torch's ways under no_grad."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(12, 32), nn.BatchNorm1d(32)
        self.body, self.out = nn.Linear(32, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(torch.relu(self.body(torch.relu(self.norm(self.stem(x))))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def updated(update):
    def use(net):
        update(net)
        return net(torch.linspace(-1, 1, 36).reshape(3, 12))

    return use


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "mul_", updated(lambda net: net.stem.weight.mul_(-1))
    yield "copy_", updated(lambda net: net.body.weight.copy_(torch.eye(32)))
    yield "one element", updated(lambda net: net.out.bias.__setitem__(2, 9.0))
    yield "a buffer", updated(lambda net: net.norm.running_mean.fill_(0.5))
    yield "zero_", updated(lambda net: net.norm.weight.zero_())
    yield "nn.init", updated(lambda net: nn.init.constant_(net.norm.weight, 2.0))
    yield "a view", updated(lambda net: net.stem.weight.view(-1)[::2].neg_())
    yield "out=", updated(lambda net: torch.add(net.out.bias, 1, out=net.out.bias.detach()))
    yield "NaN", updated(lambda net: net.out.weight[1].fill_(torch.nan))
