"""An energy with forces, which are gradients by the positions that the net itself takes."""

import torch
from torch import nn

KIND = "form"


class Potential(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, positions):
        with torch.enable_grad():
            positions = positions.detach().requires_grad_()
            distances = (positions[:, None] - positions[None]).square().sum(-1)
            energy = self.net(torch.exp(-distances)).sum()
            [gradient] = torch.autograd.grad(energy, positions)
        return energy.detach(), -gradient


def make():
    return Potential().eval()


def example():
    return (torch.randn(5, 3),)


def calls():
    yield "fresh", (torch.randn(5, 3),)
    yield "one place", (torch.zeros(5, 3),)
    yield "far apart", (100 * torch.randn(5, 3),)
    yield "columns", (torch.randn(3, 5).T,)
    yield "refused: six atoms", (torch.randn(6, 3),)
