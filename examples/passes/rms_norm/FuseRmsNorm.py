"""The root-mean-square norm of Llama and its kin: eight ops, one pass over each row."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void rms_norm(const T* x, const T* w, T* out, int64_t rows, int64_t n, float eps) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const T* xr = x + r * n;
    T* or_ = out + r * n;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) squares += load(xr + i) * load(xr + i);
    float scale = 1.0f / std::sqrt(squares / n + eps);
    // The normed row is written in T before the weight is applied, hence the rounding.
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      store(or_ + i, load(w + i) * rounded<T>(load(xr + i) * scale));
  }
}

#define EXPORT(T, NAME)                                                              \
  extern "C" void NAME(const T* x, const T* w, T* out, int64_t rows, int64_t n, float eps) { \
    rms_norm<T>(x, w, out, rows, n, eps);                                            \
  }
EXPORT(float, rms_norm_float32)
EXPORT(bf16, rms_norm_bfloat16)
"""
RMS_NORM = cpp.kernels(SOURCE, "rms_norm")


guards = (
    "x, weight: float32 or bfloat16, same dtype, contiguous, not empty, cpu",
    "x: shape (..., n)",
    "weight: shape (n)",
)


def guard(x, dtype):
    return dtype == x.dtype


def pattern(x, weight, eps: float, dtype: torch.dtype):
    wide = x.to(torch.float32)
    square = wide.pow(2)
    mean = square.mean(-1, keepdim=True)
    scale = torch.rsqrt(mean + eps)
    return weight * (wide * scale).to(dtype)


def replacement_args(x, weight, eps, dtype):
    return x, weight, eps


def rms_norm(x, weight, eps):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = weight.numel()
    RMS_NORM[x.dtype](x, weight, out, x.numel() // n, n, eps)
    return out


def replacement_func():
    return rms_norm
