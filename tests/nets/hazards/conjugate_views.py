"""Arguments that are conjugated or negated views, whose memory holds other signs."""

import torch
from torch import nn

KIND = "form"


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        return self.net(x.real) + x.imag, x.conj(), (x * x).imag


def make():
    return Parts().eval()


def example():
    return (torch.randn(4, 8, dtype=torch.complex64),)


def bits(net):
    real, conjugate, imaginary = net(torch.ones(4, 8, dtype=torch.complex64) * 1j)
    return conjugate.is_conj(), real.is_neg(), imaginary.is_neg()


def calls():
    x = torch.randn(4, 8, dtype=torch.complex64)
    yield "conjugated", (x.conj(),)
    yield "negated", (torch.complex(x.conj().imag, x.real),)
    yield "transposed and conjugated", (torch.randn(8, 4, dtype=torch.complex64).mH,)
    yield "bits of the outputs", bits
    yield "real parts of the conjugate", lambda net: torch.view_as_real(net(x.conj())[1])
    yield "refused: parts of a conjugated output", lambda net: torch.view_as_real(net(x)[1])
    yield "refused: real numbers", (torch.randn(4, 8),)
