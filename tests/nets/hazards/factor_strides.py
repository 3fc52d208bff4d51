"""Solutions and factors of matrices, which LAPACK leaves column by column; callers view columns."""

import torch
from torch import nn

KIND = "form"


class Factors(nn.Module):
    def forward(self, a, b):
        q, r = torch.linalg.qr(a)
        square = a.mT @ a + torch.eye(a.shape[-1])
        return torch.linalg.solve(square, b), torch.linalg.inv(square), q, r


def make():
    return Factors().eval()


def example():
    return torch.randn(6, 4), torch.randn(4, 3)


def calls():
    a, b = torch.randn(6, 4), torch.randn(4, 3)
    yield "fresh", (a, b)
    yield "columns", (torch.randn(4, 6).mT, torch.randn(3, 4).mT)
    yield "several", (torch.randn(2, 6, 4), torch.randn(2, 4, 3))
    yield "strides", lambda net: [list(output.stride()) for output in net(a, b)]
    yield "columns of the solution", lambda net: net(a, b)[0].mT.view(-1)
