"""A detector that returns a list of as many boxes for each image as have a score above a half."""

import torch
from torch import nn

KIND = "form"


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores, self.boxes = nn.Linear(8, 1), nn.Linear(8, 4)

    def forward(self, images):
        found = []
        for image in images:
            scores = self.scores(image).squeeze(-1).sigmoid()
            kept = scores > 0.5
            if kept.any():
                found.append({"boxes": self.boxes(image[kept]), "scores": scores[kept]})
        return found


def make():
    return Detector().eval()


def example():
    return ([torch.randn(5, 8), torch.randn(5, 8)],)


def calls():
    yield "as many candidates", ([torch.randn(5, 8), torch.randn(5, 8)],)
    yield "large ones", ([10 * torch.randn(5, 8), 10 * torch.randn(5, 8)],)
    yield "three images", ([torch.randn(5, 8), torch.randn(2, 8), torch.randn(9, 8)],)
    yield "a batch", (torch.randn(3, 5, 8),)
    yield "no candidate", ([torch.randn(0, 8)],)
    yield "no image", ([],)
