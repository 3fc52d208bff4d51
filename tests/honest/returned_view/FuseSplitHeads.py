"""The heads are a view of the argument, in the graph as in the pass; nothing is copied."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void scale(const float* x, float* out, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * factor;
}
"""
SCALE = cpp.kernel(SOURCE, "scale", "ppnf")


def pattern(x, y, shape: tuple, factor: float):
    return x.view(shape).transpose(1, 2), y * factor


def replacement_args(x, y, shape, factor):
    return x, y, shape, factor


def split_heads(x, y, shape, factor):
    y = y.contiguous()
    out = torch.empty_like(y)
    SCALE(y.data_ptr(), out.data_ptr(), y.numel(), factor)
    return x.view(shape).transpose(1, 2), out


def replacement_func():
    return split_heads
