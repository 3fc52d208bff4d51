"""A classifier of photos in bytes: the net itself scales and normalises them."""

import torch
from torch import nn

KIND = "harmless"


class BytesNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.body = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()),
            *(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            nn.Linear(32, 10),
        )

    def forward(self, photo):
        image = photo.permute(0, 3, 1, 2).to(self.mean.dtype) / 255
        return self.body((image - self.mean) / self.std).softmax(1)


def make():
    return BytesNet().eval()


def example():
    return (torch.randint(256, (1, 64, 64, 3), dtype=torch.uint8),)


def calls():
    yield "fresh", (torch.randint(256, (1, 64, 64, 3), dtype=torch.uint8),)
    yield "dark", (torch.randint(4, (1, 64, 64, 3), dtype=torch.uint8),)
    yield "black", (torch.zeros(1, 64, 64, 3, dtype=torch.uint8),)
    yield "white", (torch.full((1, 64, 64, 3), 255, dtype=torch.uint8),)
