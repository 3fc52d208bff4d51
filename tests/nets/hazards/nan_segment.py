"""A segmentation by argmax: a pixel with a NaN gets the class that eager PyTorch gives it."""

import torch
from torch import nn

KIND = "indices"


class Segment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 24, 1), nn.ReLU(), nn.Conv2d(24, 7, 1))

    def forward(self, image):
        return self.body(image).argmax(1), image.argmin(1)


def make():
    return Segment().eval()


def example():
    return (torch.rand(1, 3, 24, 24),)


def calls():
    for value in (float("nan"), float("inf"), -float("inf")):
        image = torch.rand(1, 3, 24, 24)
        image[0, 0, 10, 10] = value
        image[0, 2, 4:9, 3] = value
        yield f"{value} in some pixels", (image,)
    yield "all NaN", (torch.full((1, 3, 24, 24), float("nan")),)
    yield "black", (torch.zeros(1, 3, 24, 24),)
