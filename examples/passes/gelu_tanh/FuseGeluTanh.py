"""The tanh form of GELU, spelled out in eight ops by GPT-2: one read, one write."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

// Every op of eager torch rounds its result to T. That matters in bfloat16: where tanh is near -1,
// 1 + tanh is left with its last bits only.
template <typename T>
static void gelu_tanh(const T* x, T* out, int64_t size) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < size; i++) {
    float v = load(x + i);
    float cube = rounded<T>(rounded<T>(v * v) * v);
    float inner = rounded<T>(v + rounded<T>(0.044715f * cube));
    float t = rounded<T>(passnet::tanh(rounded<T>(0.7978845608028654f * inner)));
    store(out + i, rounded<T>(0.5f * v) * rounded<T>(1.0f + t));
  }
}

extern "C" void gelu_tanh_float32(const float* x, float* out, int64_t size) {
  gelu_tanh<float>(x, out, size);
}
extern "C" void gelu_tanh_bfloat16(const bf16* x, bf16* out, int64_t size) {
  gelu_tanh<bf16>(x, out, size);
}
"""
GELU_TANH = cpp.kernels(SOURCE, "gelu_tanh")


guards = ("x: float32 or bfloat16, contiguous, cpu",)


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu_tanh(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    GELU_TANH[x.dtype](x, out, x.numel())
    return out


def replacement_func():
    return gelu_tanh
