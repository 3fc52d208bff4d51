"""relu(x + y), that plus z, and its row sums: two kernels of one source, called in turn."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" {
void chain(const float* x, const float* y, const float* z, float* first, float* second, int64_t n) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) {
    float v = x[i] + y[i];
    first[i] = v > 0 ? v : 0.0f;
    second[i] = first[i] + z[i];
  }
}
void row_sums(const float* x, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++) total += x[r * n + i];
    out[r] = total;
  }
}
}
"""
CHAIN = cpp.kernel(SOURCE, "chain", "pppppn")
ROW_SUMS = cpp.kernel(SOURCE, "row_sums", "ppnn")


def pattern(x, y, z):
    first = torch.relu(x + y)
    second = first + z
    return first, second, second.sum(-1)


def replacement_args(x, y, z):
    return x, y, z


def chain(x, y, z):
    x, y, z = x.contiguous(), y.contiguous(), z.contiguous()
    first, second = x.new_empty(x.shape), x.new_empty(x.shape)
    totals = torch.zeros(x.shape[:-1], dtype=x.dtype)
    given = (x, y, z, first, second)
    CHAIN(*(item.data_ptr() for item in given), x.numel())
    ROW_SUMS(second.data_ptr(), totals.data_ptr(), totals.numel(), x.shape[-1])
    return [first, second, totals]


def replacement_func():
    return chain
