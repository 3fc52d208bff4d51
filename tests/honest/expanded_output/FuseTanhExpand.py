"""tanh once for every number, then an expanded view, as the graph has it."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
extern "C" void tanh_all(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = passnet::tanh(x[i]);
}
"""
TANH = cpp.kernel(SOURCE, "tanh_all", "ppn")


def pattern(x, rows: int, copies: int, n: int):
    return torch.tanh(x).unsqueeze(1).expand(rows, copies, n)


def replacement_args(x, rows, copies, n):
    return x, rows, copies, n


def tanh_expand(x, rows, copies, n):
    x = x.contiguous()
    out = torch.empty_like(x)
    TANH(x.data_ptr(), out.data_ptr(), x.numel())
    return out.unsqueeze(1).expand(rows, copies, n)


def replacement_func():
    return tanh_expand
