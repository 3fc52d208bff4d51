"""Two ways to write the kernel; which is faster here is found out at the first call of a shape."""

import time

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
extern "C" void by_tanh(const float* x, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float inner = 0.7978845608028654f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    out[i] = 0.5f * x[i] * (1.0f + passnet::tanh(inner));
  }
}
// 0.5 (1 + tanh(a)) is sigmoid(2 a).
extern "C" void by_sigmoid(const float* x, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float inner = 1.5957691216057308f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    out[i] = x[i] * passnet::sigmoid(inner);
  }
}
"""
VARIANTS = [cpp.kernel(SOURCE, name, "ppn") for name in ("by_tanh", "by_sigmoid")]
BEST = {}


def seconds(kernel, x, out, repeats=3):
    kernel(x.data_ptr(), out.data_ptr(), x.numel())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        kernel(x.data_ptr(), out.data_ptr(), x.numel())
        times.append(time.perf_counter() - start)
    return min(times)


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel = BEST.get(x.shape)
    if kernel is None:
        kernel = min(VARIANTS, key=lambda item: seconds(item, x, out))
        BEST[x.shape] = kernel
    kernel(x.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return gelu
