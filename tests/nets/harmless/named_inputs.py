"""A net that is called by names, with some arguments left at their defaults."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Gated(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.gate, self.mix = nn.Linear(2 * width, width), nn.Linear(width, width)

    def forward(self, left, right):
        gate = torch.sigmoid(self.gate(torch.cat([left, right], -1)))
        mixed = gate * left + (1 - gate) * right
        return F.layer_norm(mixed + F.gelu(self.mix(mixed)), mixed.shape[-1:])


class NamedInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 48))
        self.text = nn.Sequential(nn.Embedding(300, 48), nn.LayerNorm(48))
        self.gates = nn.ModuleList(Gated(48) for _ in range(3))
        self.out = nn.Linear(48, 7)

    def forward(self, *, image, text, weight=None, temperature=1.0, returns_features=False):
        features, text = self.image(image), self.text(text).mean(1)
        for gate in self.gates:
            features = gate(features, text)
        if weight is not None:
            features = features * weight.unsqueeze(-1)
        logits = self.out(features) / temperature
        return (logits, features) if returns_features else logits


def make():
    return NamedInputs().eval()


def arguments(scale=1.0):
    return {
        "text": torch.randint(300, (16, 12)),
        "image": scale * torch.randn(16, 64),
        "weight": torch.rand(16),
        "temperature": 0.5,
    }


def example():
    return arguments()


def calls():
    yield "fresh", arguments()
    for scale in (0.0, 1e-3, 100.0):
        yield f"images of scale {scale}", arguments(scale)
    yield "another order", dict(reversed(arguments().items()))
    yield "another temperature", arguments() | {"temperature": 2.0}
    yield "defaults", {"image": torch.randn(16, 64), "text": torch.randint(300, (16, 12))}
    yield "with features", arguments() | {"returns_features": True}
    yield "refused: no such argument", arguments() | {"tempo": 1.0}
