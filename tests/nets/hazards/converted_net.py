"""A net that callers convert and move, to other dtypes, layouts and devices, and back again."""

import torch
from torch import nn

KIND = "interface"


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))) * self.count


def make():
    return Convnet().eval()


def example():
    return (torch.randn(2, 3, 8, 8),)


def double(net):
    same = net.double()
    inside = net(torch.ones(2, 3, 8, 8).double())
    net.float()
    return inside, net(torch.ones(2, 3, 8, 8)), same is net


def rounded(net):
    net.bfloat16()
    inside = net(torch.ones(2, 3, 8, 8).bfloat16())
    net.float()
    return inside, net(torch.ones(2, 3, 8, 8))


def laid_out(net):
    net.to(memory_format=torch.channels_last)
    return net(torch.ones(2, 3, 8, 8)).is_contiguous(memory_format=torch.channels_last)


def meta(net):
    net.to("meta")
    shape = list(net(torch.ones(2, 3, 8, 8, device="meta")).shape)
    net.to_empty(device="cpu")
    with torch.no_grad():
        for number, value in enumerate(net.state_dict().values()):
            value.fill_(number + 1)
    return shape, net(torch.ones(2, 3, 8, 8))


def kept(net):
    before = net.conv.weight
    net.to(torch.float32)
    return net.conv.weight is before, str(net.count.dtype)


def calls():
    yield "fresh", (torch.randn(2, 3, 8, 8),)
    yield "float64 and back", double
    yield "bfloat16 and back", rounded
    yield "to what it is", kept
    yield "channels last", laid_out
    yield "without memory and filled anew", meta
    yield "refused: float64 for float32", (torch.randn(2, 3, 8, 8).double(),)
