"""A mixture of four experts, all of them computed, weighted by a softmax over the best two."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(64), nn.Linear(64, 4, bias=False)
        self.up = nn.Parameter(torch.randn(4, 64, 128) / 8)
        self.down = nn.Parameter(torch.randn(4, 128, 64) / 11)

    def forward(self, x):
        tokens = self.norm(x)
        scores, chosen = self.gate(tokens).topk(2, dim=-1)
        weights = torch.zeros_like(self.gate(tokens)).scatter(-1, chosen, scores.softmax(-1))
        hidden = F.gelu(torch.einsum("btd,edh->beth", tokens, self.up))
        outputs = torch.einsum("beth,ehd->betd", hidden, self.down)
        return x + (outputs * weights.transpose(1, 2).unsqueeze(-1)).sum(1)


def make():
    return nn.Sequential(Experts(), Experts(), nn.Linear(64, 10)).eval()


def example():
    return (torch.randn(2, 12, 64),)


def calls():
    yield "fresh", (torch.randn(2, 12, 64),)
    yield "small", (0.1 * torch.randn(2, 12, 64),)
    yield "large", (100 * torch.randn(2, 12, 64),)
