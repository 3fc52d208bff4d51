"""A spatial transformer: a small net finds an affine map, by which the image is sampled anew."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class SpatialTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(
            *(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 10, 5, 2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(250, 32), nn.ReLU(), nn.Linear(32, 6)),
        )
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()),
            nn.Linear(64, 10),
        )
        with torch.no_grad():
            self.locate[-1].bias.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))

    def forward(self, x):
        theta = self.locate(x).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return self.body(F.grid_sample(x, grid, align_corners=False)).log_softmax(1)


def make():
    return SpatialTransformer().eval()


def example():
    return (torch.rand(2, 1, 32, 32),)


def calls():
    yield "fresh", (torch.rand(2, 1, 32, 32),)
    yield "dark", (1e-3 * torch.rand(2, 1, 32, 32),)
    yield "bright", (5 * torch.rand(2, 1, 32, 32),)
    yield "black", (torch.zeros(2, 1, 32, 32),)
