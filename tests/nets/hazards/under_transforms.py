"""A net inside vmap, functional_call, jvp, grad and jacrev: each as of the eager net."""

import torch
from torch import nn

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


def point(rows=2):
    return torch.linspace(-1, 1, 12 * rows).reshape(rows, 12)


def mapped(net):
    return torch.func.vmap(net)(torch.stack([point(), -point()]))


def with_weights(net):
    original = getattr(net, "original_net", net)
    weights = {name: 2 * value.detach() for name, value in original.named_parameters()}
    return torch.func.functional_call(net, weights, (point(),)), net(point())


def many_nets(net):
    weights = {name: torch.stack([w, -w]).detach() for name, w in net.named_parameters()}
    return torch.func.vmap(lambda own: torch.func.functional_call(net, own, (point(),)))(weights)


def along(net):
    return torch.func.jvp(net, (point(),), (torch.ones(2, 12),))


def gradient(net):
    return torch.func.grad(lambda x: net(x).square().sum())(point())


def jacobian(net):
    return torch.func.jacrev(net)(point(1).squeeze(0)), net(point())


def calls():
    yield "no transform", (torch.randn(2, 12),)
    for use in (mapped, with_weights, many_nets, along, gradient, jacobian):
        yield use.__name__, use
