"""(x - y)^2, averaged over rows; the kernel's text is a file of the folder."""

from pathlib import Path

import torch

from passnet.passes.cpp import kernel

SOURCE = Path(__file__).with_name("mean_square.cpp").read_text(encoding="utf-8")
MEAN_SQUARE = kernel(SOURCE, "mean_square", "pppnn")


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    x, y = x.contiguous(), y.contiguous()
    *front, n = x.shape
    out = torch.empty(front, dtype=x.dtype)
    MEAN_SQUARE(x.data_ptr(), y.data_ptr(), out.data_ptr(), out.numel(), n)
    return out


def replacement_func():
    return mean_square
