"""The kernel that both passes of this folder call: silu of one half of each row times the other."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void gate(const T* x, T* out, int64_t rows, int64_t n, int64_t gate_first) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const T* g = x + r * 2 * n + (gate_first ? 0 : n);
    const T* v = x + r * 2 * n + (gate_first ? n : 0);
    T* o = out + r * n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) store(o + i, load(v + i) * rounded<T>(silu(load(g + i))));
  }
}

extern "C" void gate_float32(const float* x, float* out, int64_t rows, int64_t n, int64_t first) {
  gate<float>(x, out, rows, n, first);
}
extern "C" void gate_bfloat16(const bf16* x, bf16* out, int64_t rows, int64_t n, int64_t first) {
  gate<bf16>(x, out, rows, n, first);
}
"""
GATE = cpp.kernels(SOURCE, "gate")


def gated(x, gate_first):
    x = x.contiguous()
    *front, width = x.shape
    out = torch.empty((*front, width // 2), dtype=x.dtype)
    rows = x.numel() // width
    GATE[x.dtype](x, out, rows, width // 2, gate_first)
    return out
