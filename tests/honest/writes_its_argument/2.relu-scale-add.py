"""The kernel leaves its argument alone, and the rewritten graph writes into it as the original."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void relu_scale_add(const float* x, const float* y, float* out, float scale, int64_t n) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) out[i] = (x[i] < 0 ? 0 : x[i]) * scale + y[i];
}
"""
RELU_SCALE_ADD = cpp.kernel(SOURCE, "relu_scale_add", "pppfn")


def pattern(x, y, scale):
    activated = torch.nn.functional.relu(x, inplace=True)
    return activated * scale + y


def replacement_args(x, y, scale):
    return x, y, scale


def relu_scale_add(x, y, scale):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    RELU_SCALE_ADD(x.data_ptr(), y.data_ptr(), out.data_ptr(), scale, x.numel())
    return out


def replacement_func():
    return relu_scale_add
