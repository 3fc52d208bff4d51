"""Row-wise mean squares; how loud it is about them is a number, handed to logger.log."""

import logging

import torch

from passnet.passes import cpp

LOGGER = logging.getLogger("mean_square")
LEVEL = logging.DEBUG

MEAN_SQUARE = cpp.kernel(
    r"""
#include <cstdint>
extern "C" void mean_square(const float* x, const float* y, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++, x += n, y += n) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++) total += (x[i] - y[i]) * (x[i] - y[i]);
    out[r] = total / n;
  }
}
""",
    "mean_square",
    "pppnn",
)


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    LOGGER.log(LEVEL, "mean_square of %s", tuple(x.shape))
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype)
    MEAN_SQUARE(x.data_ptr(), y.data_ptr(), out.data_ptr(), out.numel(), x.shape[-1])
    return out


def replacement_func():
    return mean_square
