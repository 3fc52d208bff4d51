"""A net that writes into its argument as a numpy array; the argument shows it."""

import torch
from torch import nn

KIND = "form"


class Cleaned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        array = x.numpy()
        array[array < -1] = -1
        return self.net(x), torch.from_numpy(array.copy())


def make():
    return Cleaned().eval()


def example():
    return (torch.rand(4, 16),)


def calls():
    yield "numbers below -1", (3 * torch.randn(4, 16),)
    yield "more rows", (3 * torch.randn(6, 16),)
    yield "columns", (3 * torch.randn(16, 4).T,)
    yield "an argument with gradients, which are off", (torch.randn(4, 16).requires_grad_(),)
