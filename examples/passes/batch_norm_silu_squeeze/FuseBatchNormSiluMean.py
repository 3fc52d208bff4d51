"""EfficientNet before its squeeze-and-excite: batch norm, silu, and the mean of every plane."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void bn_silu_mean(const T* x, const T* mean, const T* var, const T* w, const T* b, T* out,
                         T* average, int64_t batch, int64_t channels, int64_t size, float eps) {
#pragma omp parallel for
  for (int64_t plane = 0; plane < batch * channels; plane++) {
    int64_t c = plane % channels;
    float scale = load(w + c) * (1.0f / std::sqrt(load(var + c) + eps));
    float shift = load(b + c) - load(mean + c) * scale;
    const T* xp = x + plane * size;
    T* op = out + plane * size;
    double total = 0;
    for (int64_t start = 0; start < size; start += 1024) {  // short sums stay exact enough
      int64_t stop = start + 1024 < size ? start + 1024 : size;
      float part = 0;
#pragma omp simd reduction(+ : part)
      for (int64_t i = start; i < stop; i++) {
        float v = rounded<T>(silu(rounded<T>(load(xp + i) * scale + shift)));
        store(op + i, v);
        part += v;
      }
      total += part;
    }
    store(average + plane, float(total / size));
  }
}

#define EXPORT(T, NAME)                                                                         \
  extern "C" void NAME(const T* x, const T* mean, const T* var, const T* w, const T* b, T* out, \
                       T* average, int64_t batch, int64_t channels, int64_t size, float eps) {  \
    bn_silu_mean<T>(x, mean, var, w, b, out, average, batch, channels, size, eps);              \
  }
EXPORT(float, bn_silu_mean_float32)
EXPORT(bf16, bn_silu_mean_bfloat16)
"""
BN_SILU_MEAN = cpp.kernels(SOURCE, "bn_silu_mean")


guards = (
    "x, mean, var, weight, bias: float32 or bfloat16, same dtype, contiguous, cpu",
    "x: shape (b, c, h, w), not empty",
    "mean, var, weight, bias: shape (c)",
)


def pattern(x, mean, var, weight, bias, eps: float):
    normed = torch.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)
    active = torch.nn.functional.silu(normed, inplace=True)
    return active, active.mean((2, 3), keepdim=True)


def replacement_args(x, mean, var, weight, bias, eps):
    return x, mean, var, weight, bias, eps


def bn_silu_mean(x, mean, var, weight, bias, eps):
    x = x.contiguous()
    batch, channels = x.shape[:2]
    out = torch.empty_like(x)
    average = torch.empty((batch, channels, 1, 1), dtype=x.dtype)
    BN_SILU_MEAN[x.dtype](
        x, mean, var, weight, bias,
        out, average, batch, channels, x.numel() // (batch * channels), eps,
    )  # fmt: skip
    return out, average


def replacement_func():
    return bn_silu_mean
