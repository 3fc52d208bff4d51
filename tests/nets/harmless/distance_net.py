"""A net of molecules by distances of all pairs of atoms: radial bumps, filters, an energy."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Interaction(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(16, width), nn.Softplus(), nn.Linear(width, width))
        self.before, self.after = nn.Linear(width, width, bias=False), nn.Linear(width, width)

    def forward(self, x, bumps, cutoff):
        filters = self.filter(bumps) * cutoff.unsqueeze(-1)
        total = (filters * self.before(x).unsqueeze(1)).sum(2)
        return x + self.after(F.softplus(total) - 0.6931)


class DistanceNet(nn.Module):
    def __init__(self, width=32) -> None:
        super().__init__()
        self.atoms = nn.Embedding(20, width, padding_idx=0)
        self.register_buffer("centres", torch.linspace(0, 5, 16))
        self.layers = nn.ModuleList(Interaction(width) for _ in range(2))
        self.energy = nn.Sequential(nn.Linear(width, 16), nn.Softplus(), nn.Linear(16, 1))

    def forward(self, atoms, places):
        is_atom = atoms > 0
        offset = places.unsqueeze(2) - places.unsqueeze(1)
        distance = (offset.square().sum(-1) + 1e-6).sqrt()
        bumps = torch.exp(-4.5 * (distance.unsqueeze(-1) - self.centres) ** 2)
        pairs = is_atom.unsqueeze(1) & is_atom.unsqueeze(2) & (distance < 5) & (distance > 0.01)
        cutoff = 0.5 * (torch.cos(distance * 0.6283185) + 1) * pairs
        x = self.atoms(atoms)
        for layer in self.layers:
            x = layer(x, bumps, cutoff)
        return (self.energy(x).squeeze(-1) * is_atom).sum(1)


def make():
    return DistanceNet().eval()


def molecules(first, second, scale=2.0):
    is_atom = torch.arange(14) < torch.tensor([[first], [second]])
    return torch.randint(1, 20, (2, 14)) * is_atom, scale * torch.randn(2, 14, 3)


def example():
    return molecules(14, 9)


def calls():
    yield "fresh", molecules(5, 13)
    yield "no padding", molecules(14, 14)
    yield "one atom each", molecules(1, 1)
    yield "close atoms", molecules(10, 14, 0.5)
    yield "far atoms", molecules(10, 14, 100.0)
    yield "the last kind of atom", (torch.full((2, 14), 19), 2 * torch.randn(2, 14, 3))
