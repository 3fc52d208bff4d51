"""A net whose copies share its weights, as those of an ensemble do; they keep their values."""

import torch
from torch import nn

KIND = "process"


class Member(nn.Module):
    def __init__(self, trunk=None) -> None:
        super().__init__()
        self.trunk = nn.Linear(16, 32) if trunk is None else trunk
        self.head = nn.Linear(32, 8)

    def __deepcopy__(self, memo):
        other = Member(self.trunk)
        other.head.load_state_dict(self.head.state_dict())
        return other.train(self.training)

    def forward(self, x):
        return self.head(torch.relu(self.trunk(x)))


def make():
    return Member().eval()


def state(net):
    return net.trunk.weight.tolist(), net.trunk.weight._version, net.trunk.weight.data_ptr()


def example():
    return (torch.randn(4, 16),)


def changed(net):
    before = net(torch.ones(4, 16))
    net.trunk.weight.mul_(0.5)
    net.head.bias.data.add_(1)
    return before, net(torch.ones(4, 16))


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "weights that change", changed
    yield "after this", lambda net: net(torch.full((4, 16), 0.5))
