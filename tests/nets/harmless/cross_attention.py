"""A decoder of torch over states of an encoder, whose padding is left out, with a causal mask."""

import torch
from torch import nn

KIND = "harmless"


class Translator(nn.Module):
    def __init__(self, width=48) -> None:
        super().__init__()
        self.words = nn.Embedding(400, width)
        self.places = nn.Parameter(torch.randn(16, width))
        layer = nn.TransformerDecoderLayer(width, 4, 96, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(width))
        self.out = nn.Linear(width, 400)
        self.register_buffer("causal", torch.full((16, 16), float("-inf")).triu(1))

    def forward(self, ids, memory, is_padding):
        x = self.words(ids) + self.places
        x = self.decoder(
            x, memory, tgt_mask=self.causal, memory_key_padding_mask=is_padding, tgt_is_causal=True
        )
        return self.out(x).log_softmax(-1)


def make():
    return Translator().eval()


def arguments(first, second, scale=1.0):
    is_padding = torch.arange(20) >= torch.tensor([[first], [second]])
    return torch.randint(400, (2, 16)), scale * torch.randn(2, 20, 48), is_padding


def example():
    return arguments(20, 12)


def calls():
    yield "fresh", arguments(7, 19)
    yield "no padding", arguments(20, 20)
    yield "one state each", arguments(1, 1)
    yield "states of zero", arguments(20, 12, 0.0)
    yield "small states", arguments(20, 12, 1e-3)
    yield "the last word", (torch.full((2, 16), 399), *arguments(5, 6)[1:])
