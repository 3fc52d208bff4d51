"""Slots that compete for places of an image over three rounds of attention and a GRU cell."""

import torch
from torch import nn

KIND = "harmless"


class SlotAttention(nn.Module):
    def __init__(self, width=32, num_slots=5) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(num_slots, width))
        self.norm_inputs, self.norm_slots = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.cell = nn.GRUCell(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width)
        )

    def forward(self, inputs):
        batch, _, width = inputs.shape
        inputs = self.norm_inputs(inputs)
        keys, values = self.k(inputs), self.v(inputs)
        slots = self.start.unsqueeze(0).repeat(batch, 1, 1)
        for _ in range(3):
            scores = keys @ self.q(self.norm_slots(slots)).mT * width**-0.5
            weights = scores.softmax(-1) + 1e-8
            weights = weights / weights.sum(1, keepdim=True)
            updates = weights.mT @ values
            slots = self.cell(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
            slots = slots + self.mlp(slots)
        return slots, weights


class Slots(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.slots = nn.Conv2d(3, 32, 4, 4), SlotAttention()

    def forward(self, image):
        return self.slots(self.conv(image).relu().flatten(2).mT)


def make():
    return Slots().eval()


def example():
    return (torch.randn(1, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(1, 3, 32, 32),)
    yield "small", (0.1 * torch.randn(1, 3, 32, 32),)
    yield "large", (100 * torch.randn(1, 3, 32, 32),)
    yield "black", (torch.zeros(1, 3, 32, 32),)
