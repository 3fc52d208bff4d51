"""Entropies and divergences of shares that are 0: 0 * log 0 is 0 in xlogy, entr and kl_div."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Entropies(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.prior = nn.Parameter(torch.rand(8).softmax(-1))

    def forward(self, p):
        return (
            torch.xlogy(p, p).sum(-1),
            torch.special.entr(p),
            F.kl_div(self.prior.log().expand_as(p), p, reduction="none").sum(-1),
            torch.special.xlog1py(p, -p),
            torch.logit(p, eps=2**-10),
            torch.logit(p),
            torch.asin(p * 2 - 1),
        )


def make():
    return Entropies().eval()


def example():
    return (0.1 + 0.8 * torch.rand(6, 8),)


def calls():
    yield "zeros", (torch.zeros(6, 8),)
    yield "ones", (torch.ones(6, 8),)
    yield "one-hot", (torch.eye(8)[:6].contiguous(),)
    yield "below 0 and above 1", (torch.linspace(-0.5, 1.5, 48).reshape(6, 8),)
    yield "NaN", (torch.full((6, 8), float("nan")),)
