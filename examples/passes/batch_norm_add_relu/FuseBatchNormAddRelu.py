"""The end of a residual block of ResNet: batch norm, add, relu, as one pass over the image."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void bn_add_relu(const T* x, const T* mean, const T* var, const T* w, const T* b,
                        const T* shortcut, T* out, int64_t batch, int64_t channels, int64_t size,
                        float eps) {
#pragma omp parallel for
  for (int64_t plane = 0; plane < batch * channels; plane++) {
    int64_t c = plane % channels;
    float scale = load(w + c) * (1.0f / std::sqrt(load(var + c) + eps));
    float shift = load(b + c) - load(mean + c) * scale;
    const T *xp = x + plane * size, *sp = shortcut + plane * size;
    T* op = out + plane * size;
#pragma omp simd
    for (int64_t i = 0; i < size; i++) {
      float v = rounded<T>(load(xp + i) * scale + shift) + load(sp + i);
      store(op + i, v < 0 ? 0.0f : v);
    }
  }
}

#define EXPORT(T, NAME)                                                                       \
  extern "C" void NAME(const T* x, const T* mean, const T* var, const T* w, const T* b,       \
                       const T* shortcut, T* out, int64_t batch, int64_t channels,            \
                       int64_t size, float eps) {                                             \
    bn_add_relu<T>(x, mean, var, w, b, shortcut, out, batch, channels, size, eps);            \
  }
EXPORT(float, bn_add_relu_float32)
EXPORT(bf16, bn_add_relu_bfloat16)
"""
BN_ADD_RELU = cpp.kernels(SOURCE, "bn_add_relu")


guards = (
    "x, mean, var, weight, bias, shortcut: float32 or bfloat16, same dtype, contiguous, cpu",
    "x, shortcut: shape (b, c, ...), not empty",
    "mean, var, weight, bias: shape (c)",
)


def pattern(x, mean, var, weight, bias, shortcut, eps: float):
    normed = torch.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)
    normed += shortcut
    return torch.nn.functional.relu(normed, inplace=True)


def replacement_args(x, mean, var, weight, bias, shortcut, eps):
    return x, mean, var, weight, bias, shortcut, eps


def bn_add_relu(x, mean, var, weight, bias, shortcut, eps):
    x, shortcut = x.contiguous(), shortcut.contiguous()
    out = torch.empty_like(x)
    batch, channels = x.shape[:2]
    BN_ADD_RELU[x.dtype](
        x, mean, var, weight, bias,
        shortcut, out, batch, channels, x.numel() // (batch * channels), eps,
    )  # fmt: skip
    return out


def replacement_func():
    return bn_add_relu
