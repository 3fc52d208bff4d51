"""The graph writes into its own intermediate twice; the kernel writes its output once."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void mul_add_relu(const float* x, const float* y, const float* z, float* out,
                             int64_t rows, int64_t n) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = r * n, j = 0; j < n; i++, j++) {
      float product = x[i] * y[j];
      out[i] = product + z[i];
      if (out[i] < 0) out[i] = 0;
    }
}
"""
MUL_ADD_RELU = cpp.kernel(SOURCE, "mul_add_relu", "ppppnn")


def pattern(x, y, z):
    total = x * y
    total += z
    return torch.nn.functional.relu(total, inplace=True)


def replacement_args(x, y, z):
    return x, y, z


def mul_add_relu(x, y, z):
    x, z = x.contiguous(), z.contiguous()
    y = y.expand(x.shape[-1:]).contiguous()
    out = torch.zeros_like(x)
    pointers = (x.data_ptr(), y.data_ptr(), z.data_ptr(), out.data_ptr())
    MUL_ADD_RELU(*pointers, x.numel() // y.numel(), y.numel())
    return out


def replacement_func():
    return mul_add_relu
