"""A net that is called by names, with some arguments left at their defaults."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class NamedInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 48))
        self.text = nn.Sequential(nn.Embedding(300, 48), nn.LayerNorm(48))
        self.gate, self.out = nn.Linear(96, 48), nn.Linear(48, 7)

    def forward(self, *, image, text, weight=None, temperature=1.0, returns_features=False):
        left, right = self.image(image), self.text(text).mean(1)
        gate = torch.sigmoid(self.gate(torch.cat([left, right], -1)))
        features = F.layer_norm(gate * left + (1 - gate) * right, (48,))
        if weight is not None:
            features = features * weight.unsqueeze(-1)
        logits = self.out(features) / temperature
        return (logits, features) if returns_features else logits


def make():
    return NamedInputs().eval()


def arguments(scale=1.0):
    return {
        "text": torch.randint(300, (128, 12)),
        "image": scale * torch.randn(128, 64),
        "weight": torch.rand(128),
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
    yield "defaults", {"image": torch.randn(128, 64), "text": torch.randint(300, (128, 12))}
    yield "with features", arguments() | {"returns_features": True}
    yield "refused: no such argument", arguments() | {"tempo": 1.0}
