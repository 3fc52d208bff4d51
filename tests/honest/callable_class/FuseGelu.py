"""A callable object: it holds its kernel and counts its calls."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
extern "C" void gelu(const float* x, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float inner = 0.7978845608028654f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    out[i] = 0.5f * x[i] * (1.0f + passnet::tanh(inner));
  }
}
"""


class Gelu:
    """GELU in its tanh form."""

    def __init__(self):
        self.kernel = cpp.kernel(SOURCE, "gelu", "ppn")
        self.num_calls = 0

    def __call__(self, x):
        if not x.is_contiguous():
            x = x.contiguous()
        self.num_calls += 1
        out = torch.empty_like(x)
        self.kernel(x.data_ptr(), out.data_ptr(), x.numel())
        return out

    def __repr__(self):
        return f"{type(self).__name__}({self.num_calls} calls)"


GELU = Gelu()


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def replacement_func():
    return GELU
