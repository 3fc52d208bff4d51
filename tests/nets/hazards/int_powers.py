"""Powers, squares and products of whole numbers: exact to 63 bits, then wrapping."""

import torch
from torch import nn

KIND = "values"


class IntPowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0**-20))

    def forward(self, n):
        squares = n**2
        total = squares.sum(-1, keepdim=True) - n
        bent = 31 * (n * n * n) + 7 * n - 1
        rows = n.unsqueeze(-1) * n.unsqueeze(-2)
        return (
            total.float() * self.scale,
            squares,
            n**3,
            bent,
            rows.sum(-1),
            (n * n) % 1000,
        )


def make():
    return IntPowers().eval()


def example():
    return (torch.randint(1, 20, (4, 8)),)


def calls():
    for bound in (5000, 10**5, 2**31, 2**40):
        yield f"below {bound}", (torch.randint(bound // 2, bound, (4, 8)),)
    yield "negative", (torch.randint(-(10**6), 0, (4, 8)),)
