"""GELU's tanh form for float32, float64 and bfloat16, which rounds after every op as torch does."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
void gelu(const T* x, T* out, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    out[i] = T(0.5) * x[i] * (1 + std::tanh(T(0.7978845608028654) *
                                            (x[i] + T(0.044715) * x[i] * x[i] * x[i])));
}
extern "C" void gelu_float32(const float* x, float* out, int64_t n) { gelu(x, out, n); }
extern "C" void gelu_float64(const double* x, double* out, int64_t n) { gelu(x, out, n); }
extern "C" void gelu_bfloat16(const bf16* x, bf16* out, int64_t n) {
  auto r = [](float v) { return rounded<bf16>(v); };
  for (int64_t i = 0; i < n; i++) {
    float v = load(x + i);
    float inner = r(v + r(0.044715f * r(r(v * v) * v)));
    store(out + i, r(0.5f * v) * r(1.0f + r(std::tanh(r(0.7978845608028654f * inner)))));
  }
}
"""
BY_DTYPE = {
    torch.float32: cpp.kernel(SOURCE, "gelu_float32", "ppn"),
    torch.float64: cpp.kernel(SOURCE, "gelu_float64", "ppn"),
    torch.bfloat16: cpp.kernel(SOURCE, "gelu_bfloat16", "ppn"),
}


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu(x):
    launch = BY_DTYPE.get(x.dtype)
    if launch is None:
        raise TypeError(f"no kernel for {x.dtype}; there are {', '.join(map(str, BY_DTYPE))}")
    x = x.contiguous()
    out = torch.empty_like(x)
    launch(x.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return gelu
