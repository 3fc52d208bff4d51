"""Sums and shares of 32-bit numbers: sums are taken in 64 bits, and squares wrap at 32."""

import torch
from torch import nn

KIND = "values"


class IntSums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1e-3))

    def forward(self, counts):
        total = counts.sum(-1)
        share = counts.double() / total.clamp(min=1).unsqueeze(-1)
        return (
            total,
            counts * counts,
            counts + 2_000_000_000,
            share.float() * self.scale,
        )


def make():
    return IntSums().eval()


def example():
    return (torch.randint(1, 5, (4, 8), dtype=torch.int32),)


def calls():
    for bound in (10**5, 2**30, 2**31 - 1):
        yield f"below {bound}", (torch.randint(bound // 2, bound, (4, 8), dtype=torch.int32),)
    yield "negative", (-torch.randint(1, 2**31 - 1, (4, 8), dtype=torch.int32),)
    yield "zeros", (torch.zeros(4, 8, dtype=torch.int32),)
