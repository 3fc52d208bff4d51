"""A net that is shown windows that overlap and an expanded mask; plain tensors come later."""

import torch
from torch import nn

KIND = "form"


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, windows, mask):
        return self.net(windows * mask), windows.amax(-1), mask.sum(-1)


def make():
    return Windows().eval()


def windows():
    return torch.randn(17).unfold(0, 8, 3)


def example():
    return windows(), torch.ones(4, 1).expand(4, 8)


def calls():
    mask = (torch.arange(32).view(4, 8) % 3).float()
    yield "fresh", (windows(), torch.rand(4, 1).expand(4, 8))
    yield "plain ones", (torch.randn(4, 8), mask)
    yield "plain windows", (torch.randn(4, 8), torch.rand(4, 1).expand(4, 8))
    yield "a plain mask", (windows(), mask)
    yield "one number for all", (windows(), torch.rand(1, 1).expand(4, 8))
    yield "windows further apart", (torch.randn(29).unfold(0, 8, 7), torch.ones(4, 1).expand(4, 8))
