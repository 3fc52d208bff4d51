"""Lays out its output like eager torch, which follows a transposed input: empty_strided."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
// In memory x is [planes, rows, n]; the factor belongs to the axis of the rows.
extern "C" void scale_sigmoid(const float* x, const float* factor, float* out, int64_t planes,
                              int64_t rows, int64_t n) {
  for (int64_t r = 0; r < planes * rows; r++)
    for (int64_t i = 0; i < n; i++)
      out[r * n + i] = passnet::sigmoid(x[r * n + i] * factor[r % rows]);
}
"""
SCALE_SIGMOID = cpp.kernel(SOURCE, "scale_sigmoid", "pppnnn")


def pattern(x, factor):
    return torch.sigmoid(x.transpose(1, 2) * factor)


def replacement_args(x, factor):
    return x, factor


def scale_sigmoid(x, factor):
    x, factor = x.contiguous(), factor.contiguous()
    planes, rows, n = x.shape
    out = torch.empty_strided((planes, n, rows), (rows * n, 1, n), dtype=x.dtype)
    SCALE_SIGMOID(x.data_ptr(), factor.data_ptr(), out.data_ptr(), planes, rows, n)
    return out


def replacement_func():
    return scale_sigmoid
