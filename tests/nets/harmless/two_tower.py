"""Retrieval by two towers: a user and twenty items as unit vectors, and their cosines."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Tower(nn.Module):
    def __init__(self, sizes, numbers) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 16) for size in sizes)
        self.first = nn.Linear(16 * len(sizes) + numbers, 64)
        self.cross = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(3))

    def forward(self, ids, numbers):
        columns = [table(ids[..., n]) for n, table in enumerate(self.tables)]
        start = x = self.first(torch.cat([*columns, numbers], -1))
        for layer, norm in zip(self.cross, self.norms, strict=True):
            x = norm(x + start * torch.relu(layer(x)))
        return F.normalize(x, dim=-1)


class TwoTower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = Tower((1000, 50, 7), 8), Tower((5000, 200), 5)
        self.temperature = nn.Parameter(torch.tensor(0.07))

    def forward(self, user, user_numbers, items, item_numbers):
        query = self.user(user, user_numbers)
        keys = self.item(items, item_numbers)
        return torch.einsum("bd,bnd->bn", query, keys) / self.temperature.clamp(min=0.01)


def make():
    return TwoTower().eval()


def ids(*sizes, shape=(1,)):
    return torch.stack([torch.randint(size, shape) for size in sizes], -1)


def arguments(scale=1.0):
    user, items = ids(1000, 50, 7), ids(5000, 200, shape=(1, 20))
    return user, scale * torch.randn(1, 8), items, scale * torch.randn(1, 20, 5)


def example():
    return arguments()


def calls():
    yield "fresh", arguments()
    for scale in (0.0, 1e-3, 100.0):
        yield f"numbers of scale {scale}", arguments(scale)
    user, numbers, items, item_numbers = arguments()
    yield "the first user and item", (0 * user, numbers, 0 * items, item_numbers)
    yield "the last user", (torch.tensor([[999, 49, 6]]), numbers, items, item_numbers)
    last = torch.tensor([4999, 199]).expand(1, 20, 2).contiguous()
    yield "the last item", (user, numbers, last, item_numbers)
    yield "refused: no such user", (torch.tensor([[1000, 0, 0]]), numbers, items, item_numbers)
