"""The head of a detector over two levels: boxes decoded from anchors, and scores of classes."""

import torch
from torch import nn

KIND = "harmless"


def anchors(rows, columns, stride, sizes):
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    centres = (torch.stack([x, y], -1).float() + 0.5) * stride
    centres = centres[:, :, None].expand(-1, -1, len(sizes), -1)
    return torch.cat([centres, torch.tensor(sizes).float().expand_as(centres)], -1).flatten(0, 2)


class DetectorHead(nn.Module):
    def __init__(self, width=48, num_classes=8) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.shared = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.SiLU())
        self.classes = nn.Conv2d(width, 3 * num_classes, 3, padding=1)
        self.boxes = nn.Conv2d(width, 3 * 4, 3, padding=1)
        sizes = [[16, 16], [16, 32], [32, 16]]
        both = [anchors(12, 12, 8, sizes), 2 * anchors(6, 6, 8, sizes)]
        self.register_buffer("anchors", torch.cat(both))

    def forward(self, levels):
        scores, offsets = [], []
        for level in levels:
            x = self.shared(level)
            batch = len(x)
            scores.append(self.classes(x).permute(0, 2, 3, 1).reshape(batch, -1, self.num_classes))
            offsets.append(self.boxes(x).permute(0, 2, 3, 1).reshape(batch, -1, 4))
        offset = torch.cat(offsets, 1)
        centre, size = self.anchors.split(2, -1)
        middle = centre + offset[..., :2] * size
        half = size * offset[..., 2:].clamp(max=4).exp() / 2
        boxes = torch.cat([middle - half, middle + half], -1).clamp(0, 96)
        return {"boxes": boxes, "scores": torch.cat(scores, 1).sigmoid()}


def make():
    return DetectorHead().eval()


def levels(scale=1.0):
    return ([scale * torch.randn(1, 48, 12, 12), scale * torch.randn(1, 48, 6, 6)],)


def example():
    return levels()


def calls():
    yield "fresh", levels()
    for scale in (0.0, 1e-3, 10.0, 100.0):
        yield f"features of scale {scale}", levels(scale)
