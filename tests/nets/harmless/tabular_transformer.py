"""A transformer over the columns of a table, with a token for each column and one for the class."""

import torch
from torch import nn

KIND = "harmless"


class ColumnTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(12, 32))
        self.bias = nn.Parameter(0.2 * torch.randn(12, 32))
        self.table = nn.Embedding(4 * 30, 32)
        self.register_buffer("offsets", 30 * torch.arange(4))
        self.cls = nn.Parameter(torch.randn(1, 1, 32))
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, numbers, categories):
        tokens = [
            self.cls.expand(len(numbers), -1, -1),
            numbers.unsqueeze(-1) * self.weight + self.bias,
            self.table(categories + self.offsets),
        ]
        return self.head(self.encoder(torch.cat(tokens, 1))[:, 0])


def make():
    return ColumnTransformer().eval()


def example():
    return torch.randn(16, 12), torch.randint(30, (16, 4))


def calls():
    yield "fresh", (torch.randn(16, 12), torch.randint(30, (16, 4)))
    yield "zeros", (torch.zeros(16, 12), torch.zeros(16, 4).long())
    yield "last rows", (torch.randn(16, 12), torch.full((16, 4), 29))
    yield "small", (1e-3 * torch.randn(16, 12), torch.randint(30, (16, 4)))
    yield "large", (100 * torch.randn(16, 12), torch.randint(30, (16, 4)))
