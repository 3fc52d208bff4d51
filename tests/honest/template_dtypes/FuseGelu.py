"""The tanh form of GELU from a template that serves float32 and bfloat16."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
struct Gelu {
  static float at(float v) {
    float cube = rounded<T>(rounded<T>(v * v) * v);
    float inner = rounded<T>(v + rounded<T>(0.044715f * cube));
    float t = rounded<T>(std::tanh(rounded<T>(0.7978845608028654f * inner)));
    return rounded<T>(0.5f * v) * rounded<T>(1.0f + t);
  }
};

template <typename T, template <typename> class Op>
void apply(const T* x, T* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) store(out + i, Op<T>::at(load(x + i)));
}

extern "C" void gelu_float32(const float* x, float* out, int64_t n) {
  apply<float, Gelu>(x, out, n);
}
extern "C" void gelu_bfloat16(const bf16* x, bf16* out, int64_t n) {
  apply<bf16, Gelu>(x, out, n);
}
"""
GELU = cpp.kernels(SOURCE, "gelu", "ppn")


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    GELU[x.dtype](x.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return gelu
