"""A diffusion transformer: norms whose scale, shift and gate come from the step and the class."""

import math

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"

WIDTH = 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.modulate = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x, condition):
        parts = self.modulate(condition).unsqueeze(1).chunk(6, dim=-1)
        shift1, scale1, gate1, shift2, scale2, gate2 = parts
        own = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(own).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + gate1 * self.out(mixed)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiffusionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.classes = nn.Conv2d(4, WIDTH, 2, 2), nn.Embedding(11, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(1, 16, WIDTH))
        self.time = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.last = nn.Linear(WIDTH, 2 * 2 * 4)
        rate = torch.exp(-math.log(10000.0) * torch.arange(WIDTH // 2) / (WIDTH // 2))
        self.register_buffer("rate", rate)

    def forward(self, latent, step, label):
        x = self.patch(latent).flatten(2).transpose(1, 2) + self.places
        angle = step.unsqueeze(1) * self.rate
        condition = self.time(torch.cat([angle.cos(), angle.sin()], 1)) + self.classes(label)
        for block in self.blocks:
            x = block(x, condition)
        x = self.last(x).view(len(x), 4, 4, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(latent.shape)


def make():
    return DiffusionTransformer().eval()


def example():
    return torch.randn(2, 4, 8, 8), torch.tensor([400.0, 400.0]), torch.tensor([3, 10])


def calls():
    for step in (0.0, 1.0, 250.5, 999.0):
        steps = torch.full((2,), step)
        yield f"step {step}", (torch.randn(2, 4, 8, 8), steps, torch.tensor([0, 10]))
    labels = torch.tensor([5, 7])
    yield "small", (0.01 * torch.randn(2, 4, 8, 8), torch.tensor([10.0, 10.0]), labels)
    yield "zeros", (torch.zeros(2, 4, 8, 8), torch.tensor([10.0, 20.0]), labels)
