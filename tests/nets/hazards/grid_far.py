"""Images sampled at points far outside, on the edge and at NaN, with three kinds of padding."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Warp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(2, 1, 1) + 0.5)

    def forward(self, image, grid):
        image = image * self.gain
        return (
            F.grid_sample(image, grid, align_corners=False),
            F.grid_sample(image, grid, padding_mode="border", align_corners=True),
            F.grid_sample(image, grid, padding_mode="reflection", align_corners=False),
            F.grid_sample(image, grid, mode="nearest", align_corners=False),
            F.grid_sample(image, grid, mode="nearest", padding_mode="border", align_corners=True),
        )


def make():
    return Warp().eval()


def example():
    return torch.rand(1, 2, 9, 9), torch.rand(1, 6, 6, 2) * 1.5 - 0.75


def calls():
    image = torch.rand(1, 2, 9, 9)
    yield "outside", (image, 8 * torch.rand(1, 6, 6, 2) - 4)
    yield "far outside", (image, 1e5 * torch.sign(torch.randn(1, 6, 6, 2)))
    yield "on the edges", (image, torch.randint(-1, 2, (1, 6, 6, 2)).float())
    grid = torch.rand(1, 6, 6, 2) - 0.5
    grid[0, 2, 2, 0] = float("nan")
    yield "a NaN in the grid", (image, grid)
    grid = torch.rand(1, 6, 6, 2) - 0.5
    grid[0, 1, 1] = float("inf")
    yield "an infinity in the grid", (image, grid)
