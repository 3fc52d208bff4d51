"""A net whose parts have names that exporters must change; similar ones are not mixed up."""

import torch
from torch import nn

KIND = "form"


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        names = ("a-b", "a_b", "a b", "1", "_1", "für", "weight", "L__self___a_b", "a_b_bias")
        self.parts = nn.ModuleDict({name: nn.Linear(8, 8) for name in names})
        for number, name in enumerate(("b-c", "b_c", "b_parts_a_b_weight", "c_b")):
            self.register_buffer(name, torch.full((8,), 1.0 + number))

    def forward(self, x):
        for part in self.parts.values():
            x = torch.tanh(part(x))
        scales = torch.stack([value for _, value in self.named_buffers()])
        return x * scales[0] - scales[1], scales


def make():
    return Named().eval()


def example():
    return (torch.randn(4, 8),)


def changed(name):
    def use(net):
        before = net(torch.ones(4, 8))
        net.parts[name].bias.fill_(0.5)
        return before, net(torch.ones(4, 8))

    return use


def buffer(net):
    net.b_c.fill_(-1.0)
    return net(torch.ones(4, 8))


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "one part changed", changed("a_b")
    yield "a similar one", changed("a-b")
    yield "a number", changed("1")
    yield "a buffer", buffer
    yield "names", lambda net: list(net.state_dict())
