"""A classifier that divides by 255 if a pixel is above 1: each image its own range."""

import torch
from torch import nn

KIND = "control flow"


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 16, 3), nn.SiLU()
        )
        self.out = nn.Linear(16, 4)

    def forward(self, image):
        if image.max() > 1:
            image = image / 255
        return self.out(self.body((image - self.mean) / self.std).mean((2, 3)))


def make():
    return Classifier().eval()


def example():
    return (torch.rand(2, 3, 16, 16),)


def calls():
    yield "from 0 to 1", (torch.rand(2, 3, 16, 16),)
    yield "from 0 to 255", (torch.randint(0, 256, (2, 3, 16, 16)).float(),)
    yield "white, from 0 to 1", (torch.ones(2, 3, 16, 16),)
    yield "nearly black, from 0 to 255", (torch.randint(0, 2, (2, 3, 16, 16)).float() * 2,)
