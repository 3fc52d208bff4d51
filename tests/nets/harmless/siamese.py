"""A Siamese net: two images through one convnet, their distance and the chance of a match."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3)),
            *(nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(128, 32)),
        )
        self.out = nn.Linear(32, 1)

    def forward(self, left, right):
        left, right = self.body(left), self.body(right)
        distance = F.pairwise_distance(left, right)
        return distance, self.out((left - right).abs()).sigmoid().squeeze(-1)


def make():
    return Siamese().eval()


def example():
    return torch.rand(4, 1, 40, 40), torch.rand(4, 1, 40, 40)


def calls():
    image = torch.rand(4, 1, 40, 40)
    yield "fresh", (torch.rand(4, 1, 40, 40), torch.rand(4, 1, 40, 40))
    yield "twice the same", (image, image.clone())
    yield "one image brighter", (image, 100 * image)
    yield "one image black", (image, torch.zeros(4, 1, 40, 40))
