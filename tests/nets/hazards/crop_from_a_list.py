"""A net that crops its image at a corner read by tolist(): each call its own crop."""

import torch
from torch import nn

KIND = "control flow"


class Cropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)
        )

    def forward(self, image, corner):
        left, top = (min(max(place, 0), 12) for place in corner.tolist())
        return self.body(image[:, :, top : top + 12, left : left + 12]).mean((2, 3))


def make():
    return Cropped().eval()


def example():
    return torch.randn(1, 3, 24, 24), torch.tensor([2, 2])


def calls():
    for corner in ([2, 2], [4, 4], [0, 12], [7, -3], [50, 1]):
        yield f"corner {corner}", (torch.randn(1, 3, 24, 24), torch.tensor(corner))
    yield "refused: three numbers", (torch.randn(1, 3, 24, 24), torch.tensor([1, 2, 3]))
