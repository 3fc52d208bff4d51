"""Phases, magnitudes and products of complex numbers, given as pairs: also of 0 and of reals."""

import torch
from torch import nn

KIND = "values"


class Phase(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.rand(6))

    def forward(self, pairs):
        z = torch.view_as_complex(pairs)
        turned = z * torch.polar(torch.ones_like(self.turn), self.turn)
        phase, size = torch.angle(z), z.abs()
        again = torch.view_as_real(torch.polar(size, phase))
        return (
            phase,
            size,
            torch.view_as_real(turned),
            again,
            torch.angle(pairs[..., 0]),
            torch.view_as_real(z.sgn()),
        )


def make():
    return Phase().eval()


def example():
    return (torch.rand(4, 6, 2) + 0.1,)


def calls():
    yield "zeros", (torch.zeros(4, 6, 2),)
    yield "negative reals", (torch.tensor([-1.0, 0.0]).repeat(4, 6, 1),)
    yield "negative reals with -0", (torch.tensor([-1.0, -0.0]).repeat(4, 6, 1),)
    yield "imaginary", (torch.tensor([0.0, -2.0]).repeat(4, 6, 1),)
    yield "fresh", (torch.randn(4, 6, 2),)
    yield "of 1e25", (1e25 * torch.randn(4, 6, 2),)
