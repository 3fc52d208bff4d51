"""A classifier of clouds of points: a shared MLP, the maximum over points, a learned rotation."""

import torch
from torch import nn

KIND = "harmless"


def shared(*widths):
    layers = []
    for a, b in zip(widths, widths[1:], strict=False):
        layers += [nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*layers)


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn_points = shared(3, 24, 48)
        self.turn = nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 9))
        self.points = shared(3, 32, 32, 96)
        self.head = nn.Sequential(
            nn.Linear(96, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 8)
        )

    def forward(self, points):
        x = points.transpose(1, 2)
        turn = self.turn(self.turn_points(x).max(2)[0]).view(-1, 3, 3)
        turn = turn + torch.eye(3, dtype=x.dtype, device=x.device)
        x = self.points(torch.bmm(turn, x))
        return self.head(torch.max(x, dim=2)[0])


def make():
    net = PointNet().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.2, 1)
    return net


def example():
    return (torch.randn(2, 128, 3),)


def calls():
    yield "fresh", (torch.randn(2, 128, 3),)
    yield "a tiny cloud", (1e-3 * torch.randn(2, 128, 3),)
    yield "a large cloud", (100 * torch.randn(2, 128, 3),)
    yield "all points at one place", (torch.randn(2, 1, 3).repeat(1, 128, 1),)
    yield "zeros", (torch.zeros(2, 128, 3),)
