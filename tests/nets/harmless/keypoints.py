"""Key points by a soft argmax: heat maps, their softmax, and the mean place of each."""

import torch
from torch import nn

KIND = "harmless"


class Keypoints(nn.Module):
    def __init__(self, num_points=11) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 24, 5, 2, 2), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()),
            nn.Conv2d(24, num_points, 1),
        )

    def forward(self, image):
        maps = self.body(image)
        height, width = maps.shape[-2:]
        heat = (10 * maps).flatten(2).softmax(-1).unflatten(-1, (height, width))
        x = torch.linspace(-1, 1, width, device=maps.device, dtype=maps.dtype)
        y = torch.linspace(-1, 1, height, device=maps.device, dtype=maps.dtype)
        places = torch.stack([(heat.sum(2) * x).sum(-1), (heat.sum(3) * y).sum(-1)], -1)
        return places, heat.amax((2, 3))


def make():
    return Keypoints().eval()


def example():
    return (torch.rand(1, 1, 64, 48),)


def calls():
    yield "fresh", (torch.rand(1, 1, 64, 48),)
    yield "dark", (1e-3 * torch.rand(1, 1, 64, 48),)
    yield "bright", (10 * torch.rand(1, 1, 64, 48),)
    yield "black", (torch.zeros(1, 1, 64, 48),)
