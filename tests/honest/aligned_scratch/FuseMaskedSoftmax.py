"""Rows are worked on in aligned scratch memory that C++ allocates and frees."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdlib>
#include "passnet_kernel.h"
extern "C" void softmax(const float* x, const float* mask, float* out, int64_t batch, int64_t heads,
                        int64_t n, int64_t m, float scale) {
  int64_t bytes = (m * 4 + 63) / 64 * 64;
  float* row = static_cast<float*>(std::aligned_alloc(64, bytes));
  for (int64_t r = 0; r < batch * heads * n; r++) {
    const float* y = mask + (r / (heads * n) * n + r % n) * m;
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < m; i++) row[i] = x[r * m + i] * scale + y[i];
#pragma omp simd reduction(max : top) aligned(row : 64)
    for (int64_t i = 0; i < m; i++) top = row[i] > top ? row[i] : top;
#pragma omp simd reduction(+ : total) aligned(row : 64)
    for (int64_t i = 0; i < m; i++) total += row[i] = passnet::exp(row[i] - top);
    for (int64_t i = 0; i < m; i++) out[r * m + i] = row[i] / total;
  }
  std::free(row);
}
"""
SOFTMAX = cpp.kernel(SOURCE, "softmax", "pppnnnnf")


def pattern(scores, mask, scale: float):
    return torch.nn.functional.softmax(scores * scale + mask, dim=-1)


def replacement_args(scores, mask, scale):
    return scores, mask, scale


def masked_softmax(scores, mask, scale):
    scores, mask = scores.contiguous(), mask.contiguous()
    out = torch.empty_like(scores)
    SOFTMAX(scores.data_ptr(), mask.data_ptr(), out.data_ptr(), *scores.shape, scale)
    return out


def replacement_func():
    return masked_softmax
