"""A net of sets of up to twenty items: a mean and a maximum over those that are there."""

import torch
from torch import nn

KIND = "harmless"


class DeepSets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(129, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, items, is_there):
        x = self.items(items)
        mask = is_there.unsqueeze(-1)
        count = mask.sum(1).to(x.dtype)
        mean = (x * mask).sum(1) / count.clamp(min=1)
        largest = x.masked_fill(~mask, -1e9).amax(1) * (count > 0)
        return self.head(torch.cat([mean, largest, count.log1p()], 1))


def make():
    return DeepSets().eval()


def sets(lengths, scale=1.0):
    return scale * torch.randn(32, 20, 10), torch.arange(20) < torch.tensor(lengths)[:, None]


def example():
    return sets([3 + n // 2 for n in range(32)])


def calls():
    yield "fresh", sets([1 + n // 2 for n in range(32)])
    yield "all full", sets([20] * 32)
    yield "one item each", sets([1] * 32)
    yield "empty sets", sets([0] * 16 + [5] * 16)
    for scale in (0.0, 1e-3, 100.0):
        yield f"items of scale {scale}", sets([3 + n // 2 for n in range(32)], scale)
