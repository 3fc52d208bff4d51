"""A net that pads by as many columns as its largest count says: each call its own padding."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "control flow"


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 4, 3)
        )

    def forward(self, x, counts):
        return self.body(F.pad(x, (0, min(int(counts.max()), 16)), value=1.0))


def make():
    return Padded().eval()


def example():
    return torch.randn(2, 4, 12), torch.tensor([4, 4])


def calls():
    for counts in ([4, 4], [1, 3], [0, 9], [0, 0], [-2, -3]):
        yield f"counts {counts}", (torch.randn(2, 4, 12), torch.tensor(counts))
