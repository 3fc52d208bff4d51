"""A segmentation head: dilated convolutions, a global branch, and bilinear interpolation."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()
        )
        self.branches = nn.ModuleList(
            [nn.Conv2d(32, 16, 1), *(nn.Conv2d(32, 16, 3, padding=r, dilation=r) for r in (2, 4))]
        )
        self.whole = nn.Conv2d(32, 16, 1)
        self.project, self.out = nn.Conv2d(64, 32, 1), nn.Conv2d(32, 6, 1)

    def forward(self, image):
        x = self.stem(image)
        whole = self.whole(F.adaptive_avg_pool2d(x, 1))
        whole = F.interpolate(whole, size=x.shape[2:], mode="bilinear", align_corners=False)
        x = torch.cat([branch(x) for branch in self.branches] + [whole], 1)
        x = self.out(F.relu(self.project(F.relu(x))))
        return F.interpolate(x, size=image.shape[-2:], mode="bilinear", align_corners=False)


def make():
    return Segmenter().eval()


def example():
    return (torch.randn(1, 3, 56, 72),)


def calls():
    yield "fresh", (torch.randn(1, 3, 56, 72),)
    yield "small", (1e-3 * torch.randn(1, 3, 56, 72),)
    yield "large", (100 * torch.randn(1, 3, 56, 72),)
    yield "black", (torch.zeros(1, 3, 56, 72),)
