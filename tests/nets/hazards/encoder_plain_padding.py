"""An encoder without nested tensors and with a mask of floats: its padding is minus infinity."""

import torch
from torch import nn

KIND = "values"


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, norm_first=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x, mask, padding):
        h = self.encoder(x, mask=mask, src_key_padding_mask=padding)
        return h[:, 0].clone(), h.nan_to_num().mean(1)


def make():
    return Encoder().eval()


def example():
    return torch.rand(2, 8, 32), torch.zeros(8, 8), torch.zeros(2, 8)


def calls():
    x, mask, padding = torch.randn(2, 8, 32), torch.zeros(8, 8), torch.zeros(2, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(8)
    yield "causal", (x, causal, padding)
    padding[1, 5:] = -float("inf")
    yield "padded", (x, mask, padding)
    yield "causal and padded", (x, causal, padding)
    left = torch.zeros(2, 8)
    left[0, :3] = -float("inf")
    yield "causal, and padded on the left", (x, causal, left)
