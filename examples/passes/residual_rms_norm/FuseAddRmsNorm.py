"""x + y and its root-mean-square norm: nine ops, one pass over each row, two outputs."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void add_rms_norm(const T* x, const T* y, const T* w, T* sum, T* out, int64_t rows,
                         int64_t n, float eps) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const T *xr = x + r * n, *yr = y + r * n;
    T *sr = sum + r * n, *or_ = out + r * n;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) {
      store(sr + i, load(xr + i) + load(yr + i));
      squares += load(sr + i) * load(sr + i);
    }
    float scale = 1.0f / std::sqrt(squares / n + eps);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      store(or_ + i, load(w + i) * rounded<T>(load(sr + i) * scale));
  }
}

#define EXPORT(T, NAME)                                                                     \
  extern "C" void NAME(const T* x, const T* y, const T* w, T* sum, T* out, int64_t rows,    \
                       int64_t n, float eps) {                                              \
    add_rms_norm<T>(x, y, w, sum, out, rows, n, eps);                                       \
  }
EXPORT(float, add_rms_norm_float32)
EXPORT(bf16, add_rms_norm_bfloat16)
"""
ADD_RMS_NORM = cpp.kernels(SOURCE, "add_rms_norm")


guards = (
    "x, y, weight: float32 or bfloat16, same dtype, contiguous, not empty, cpu",
    "x, y: shape (..., n)",
    "weight: shape (n)",
)


def guard(x, dtype):
    return dtype == x.dtype


def pattern(x, y, weight, eps: float, dtype: torch.dtype):
    total = x + y
    wide = total.to(torch.float32)
    square = wide.pow(2)
    mean = square.mean(-1, keepdim=True)
    scale = torch.rsqrt(mean + eps)
    return total, weight * (wide * scale).to(dtype)


def replacement_args(x, y, weight, eps, dtype):
    return x, y, weight, eps


def add_rms_norm(x, y, weight, eps):
    x, y = x.contiguous(), y.contiguous()
    total, out = torch.empty_like(x), torch.empty_like(x)
    n = weight.numel()
    ADD_RMS_NORM[x.dtype](
        x, y, weight, total, out,
        x.numel() // n, n, eps,
    )  # fmt: skip
    return total, out


def replacement_func():
    return add_rms_norm
