"""A net of molecules that returns forces, the gradient of its energy, which it takes by itself."""

import torch
from torch import nn

KIND = "state"


class Potential(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(5, 8)
        self.body = nn.Sequential(nn.Linear(17, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.out = nn.Linear(32, 1)

    def forward(self, positions, kinds):
        with torch.enable_grad():
            positions = positions.detach().requires_grad_()
            offsets = positions[:, None] - positions[None]
            distances = (offsets.square().sum(-1, keepdim=True) + 0.1).sqrt()
            features = self.kinds(kinds)
            pairs = torch.broadcast_tensors(features[:, None], features[None])
            energy = self.out(self.body(torch.cat([*pairs, distances], -1))).sum()
            (gradient,) = torch.autograd.grad(energy, positions)
        return energy.detach(), -gradient


def make():
    return Potential().eval()


def example():
    return torch.randn(6, 3), torch.randint(0, 5, (6,))


def calls():
    yield "fresh", (torch.randn(6, 3), torch.randint(0, 5, (6,)))
    yield "far apart", (50 * torch.randn(6, 3), torch.randint(0, 5, (6,)))
    yield "all at one place", (torch.zeros(6, 3), torch.arange(6) % 5)
    yield "fewer", (torch.randn(3, 3), torch.tensor([0, 1, 2]))
