"""A net on which callers register hooks, before, after and within a call, and remove them again."""

import torch
from torch import nn

KIND = "interface"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x, scale=1.0):
        return self.head(torch.tanh(self.net(x))) * scale


def make():
    return Scaled().eval()


def example():
    return (torch.randn(4, 8),)


def used(register, hook, **kwargs):
    """Return a use that registers a hook, calls the net, removes the hook and calls it again."""

    def use(net):
        handle = register(net)(hook, **kwargs)
        inside = net(torch.ones(4, 8))
        handle.remove()
        return inside, net(torch.ones(4, 8))

    return use


def collected(net):
    seen = []
    handles = [
        module.register_forward_hook(lambda module, given, output: seen.append(output))
        for _, module in net.named_modules()
    ]
    output = net(torch.ones(4, 8))
    for handle in handles:
        handle.remove()
    return len(seen), seen[-1] is output


def named(net):
    def hook(module, args, kwargs):
        return args, {**kwargs, "scale": 3.0}

    handle = net.register_forward_pre_hook(hook, with_kwargs=True)
    output = net(torch.ones(4, 8))
    handle.remove()
    return output


def backward(net):
    seen = []
    handle = net.register_full_backward_hook(lambda module, into, out: seen.append(out[0]))
    with torch.enable_grad():
        x = torch.ones(4, 8, requires_grad=True)
        net(x).sum().backward()
    handle.remove()
    for weight in net.parameters():
        weight.grad = None
    return seen, x.grad


def of_weights(net):
    seen = []
    handle = net.get_parameter("head.bias").register_hook(lambda grad: seen.append(grad))
    with torch.enable_grad():
        net(torch.ones(4, 8)).sum().backward()
    handle.remove()
    for weight in net.parameters():
        weight.grad = None
    return seen


def is_same(net):
    seen = []
    handle = net.register_forward_hook(lambda module, given, output: seen.append(module))
    net(torch.ones(4, 8))
    handle.remove()
    return seen[0] is net, len(seen)


def calls():
    def doubles(module, given, output):
        return output * 2

    def halves(module, given):
        return (given[0] * 0.5,)

    yield "after", used(lambda net: net.register_forward_hook, doubles)
    yield "before", used(lambda net: net.register_forward_pre_hook, halves)
    yield "after a part", used(lambda net: net.net.register_forward_hook, doubles)
    yield "before a part", used(lambda net: net.head.register_forward_pre_hook, halves)
    yield "first of all", used(lambda net: net.register_forward_hook, doubles, prepend=True)
    yield "arguments by name", named
    yield "of all modules", collected
    yield "gradients", backward
    yield "gradients of a weight", of_weights
    yield "the module that a hook sees", is_same
