"""An image and five texts as unit vectors, their cosines times a learned scale."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Contrastive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            *(nn.Conv2d(3, 48, 8, 8, bias=False), nn.Flatten(2), nn.LayerNorm(16)),
            *(nn.Flatten(), nn.Linear(48 * 16, 64, bias=False)),
        )
        self.words, self.places = nn.Embedding(900, 48), nn.Parameter(0.1 * torch.randn(12, 48))
        layer = nn.TransformerEncoderLayer(48, 4, 96, batch_first=True, norm_first=True)
        self.text = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.project = nn.Linear(48, 64, bias=False)
        self.log_scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, image, ids):
        hidden = self.text(self.words(ids) + self.places)
        last = hidden[torch.arange(len(ids)), ids.argmax(-1)]
        image = F.normalize(self.image(image), dim=-1)
        text = F.normalize(self.project(last), dim=-1)
        logits = self.log_scale.exp() * image @ text.t()
        return logits, logits.t()


def make():
    return Contrastive().eval()


def texts(*ends):
    ids = torch.randint(1, 899, (5, 12)) * (torch.arange(12) < torch.tensor(ends)[:, None])
    ids[torch.arange(5), torch.tensor(ends)] = 899
    return ids


def example():
    return torch.randn(1, 3, 32, 32), texts(3, 7, 11, 5, 6)


def calls():
    yield "fresh", (torch.randn(1, 3, 32, 32), texts(11, 1, 9, 2, 4))
    yield "empty texts", (torch.randn(1, 3, 32, 32), texts(0, 0, 0, 0, 0))
    yield "full texts", (torch.randn(1, 3, 32, 32), texts(11, 11, 11, 11, 11))
    yield "a bright image", (100 * torch.rand(1, 3, 32, 32), texts(3, 4, 5, 6, 7))
    yield "refused: no such word", (torch.randn(1, 3, 32, 32), texts(1, 2, 3, 4, 5) + 1)
