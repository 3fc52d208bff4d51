"""A generator of images of a class: transposed convolutions with batch norm, and tanh."""

import torch
from torch import nn

KIND = "harmless"


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Embedding(10, 16)
        layers = []
        for width_in, width_out, stride in ((48, 48, 1), (48, 32, 2), (32, 16, 2)):
            layers += [
                nn.ConvTranspose2d(width_in, width_out, 4, stride, int(stride > 1), bias=False),
                nn.BatchNorm2d(width_out),
                nn.ReLU(True),
            ]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise, label):
        code = torch.cat([noise, self.classes(label)], 1)
        return self.layers(code[:, :, None, None])


def make():
    net = Generator().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.05)
            module.running_var.uniform_(0.01, 0.1)
    return net


def example():
    return torch.randn(4, 32), torch.tensor([1, 5, 3, 7])


def calls():
    yield "fresh", (torch.randn(4, 32), torch.randint(10, (4,)))
    yield "first and last class", (torch.randn(4, 32), torch.tensor([0, 9, 0, 9]))
    yield "no noise", (torch.zeros(4, 32), torch.tensor([4, 4, 2, 2]))
    yield "truncated noise", (torch.randn(4, 32).clamp(-0.5, 0.5), torch.randint(10, (4,)))
    yield "refused: no such class", (torch.randn(4, 32), torch.tensor([1, 10, 3, 3]))
