"""A net with a head for each task, found by the item of a tensor; other tasks have the first."""

import torch
from torch import nn

KIND = "control flow"


class ManyTasks(nn.Module):
    NAMES = {0: "topic", 3: "tone", 7: "language"}

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32))
        self.heads = nn.ModuleDict({name: nn.Linear(32, 4) for name in self.NAMES.values()})

    def forward(self, task, x):
        return self.heads[self.NAMES.get(task.item(), "topic")](self.body(x))


def make():
    return ManyTasks().eval()


def example():
    return torch.tensor(3), torch.randn(2, 16)


def calls():
    for task in (3, 0, 7):
        yield f"task {task}", (torch.tensor(task), torch.randn(2, 16))
    yield "no such task", (torch.tensor(4), torch.randn(2, 16))
