"""Retrieval by two towers: a user and twenty items as unit vectors, and their cosines."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Tower(nn.Module):
    def __init__(self, rows, numbers) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, 32)
        self.layers = nn.Sequential(
            nn.Linear(32 + numbers, 128), nn.ReLU(), nn.Linear(128, 64), nn.LayerNorm(64)
        )

    def forward(self, ids, numbers):
        vectors = self.layers(torch.cat([self.table(ids), numbers], -1))
        return F.normalize(vectors, dim=-1)


class TwoTower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = Tower(1000, 8), Tower(5000, 5)
        self.temperature = nn.Parameter(torch.tensor(0.07))

    def forward(self, user, user_numbers, items, item_numbers):
        query = self.user(user, user_numbers)
        keys = self.item(items, item_numbers)
        return torch.einsum("bd,bnd->bn", query, keys) / self.temperature.clamp(min=0.01)


def make():
    return TwoTower().eval()


def arguments(scale=1.0):
    return (
        torch.randint(1000, (16,)),
        scale * torch.randn(16, 8),
        torch.randint(5000, (16, 20)),
        scale * torch.randn(16, 20, 5),
    )


def example():
    return arguments()


def calls():
    yield "fresh", arguments()
    for scale in (0.0, 1e-3, 100.0):
        yield f"numbers of scale {scale}", arguments(scale)
    _, users, items, numbers = arguments()
    yield "the first user and item", (torch.zeros(16).long(), users, 0 * items, numbers)
    yield "the last user", (torch.full((16,), 999), users, items, numbers)
    yield "the last item", (torch.ones(16).long(), users, torch.full((16, 20), 4999), numbers)
