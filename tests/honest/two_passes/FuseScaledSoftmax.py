"""The scale and the softmax between the two products of an attention."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
extern "C" void scaled_softmax(const float* x, float* out, int64_t rows, int64_t n, float scale) {
  for (int64_t r = 0; r < rows; r++, x += n, out += n) {
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < n; i++) top = x[i] * scale > top ? x[i] * scale : top;
    for (int64_t i = 0; i < n; i++) total += out[i] = passnet::exp(x[i] * scale - top);
    for (int64_t i = 0; i < n; i++) out[i] /= total;
  }
}
"""
SCALED_SOFTMAX = cpp.kernel(SOURCE, "scaled_softmax", "ppnnf")


def pattern(x, scale: float):
    return torch.nn.functional.softmax(x * scale, dim=-1)


def replacement_args(x, scale):
    return x, scale


def scaled_softmax(x, scale):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.shape[-1]
    SCALED_SOFTMAX(x.data_ptr(), out.data_ptr(), x.numel() // n, n, scale)
    return out


def replacement_func():
    return scaled_softmax
