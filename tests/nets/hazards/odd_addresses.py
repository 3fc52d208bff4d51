"""Images, truth values and floats that begin at odd addresses, as parts of a packed buffer do."""

import torch
from torch import nn

KIND = "form"


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(33, 9)

    def forward(self, pixels, mask, shift):
        y = pixels.float() / 255 + shift
        return self.net(y.masked_fill(mask, 0.0)), pixels.flip(-1), mask.sum(-1)


def make():
    return Packed().eval()


def tensors(offset):
    pixels = torch.randint(0, 256, (offset + 165,), dtype=torch.uint8)[offset:].view(5, 33)
    mask = (torch.rand(offset + 165) > 0.5)[offset:].view(5, 33)
    return pixels, mask, torch.randn(offset + 165)[offset:].view(5, 33)


def example():
    return tensors(0)


def from_bytes(net):
    """Read a float from the middle of a buffer of bytes."""
    pixels, mask, _ = tensors(0)
    contents = torch.arange(700, dtype=torch.int16).view(torch.uint8)[12:672]
    return net(pixels, mask, contents.view(torch.float32).nan_to_num(0).clamp(-1, 1).view(5, 33))


def calls():
    for offset in (0, 1, 3, 7, 13):
        yield f"from element {offset}", tensors(offset)
    yield "from the middle of bytes", from_bytes
