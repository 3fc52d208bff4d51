"""relu into a new tensor, whether the graph asked for it in place or not."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void relu(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] < 0 ? 0.0f : x[i];
}
"""
RELU = cpp.kernel(SOURCE, "relu", "ppn")


def pattern(x):
    return torch.nn.functional.relu(x, inplace=True)


def replacement_args(x):
    return (x,)


def relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    RELU(x.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return relu
