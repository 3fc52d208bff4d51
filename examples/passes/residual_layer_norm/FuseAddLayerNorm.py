"""x + y and its layer norm, in one pass over each row."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

// One row: the sum is rounded as the add of eager torch rounds it, then read back by the norm.
template <typename T>
static void add_norm(const T* x, const T* y, const T* w, const T* b, T* sum, T* out, int64_t rows,
                     int64_t n, float eps) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const T *xr = x + r * n, *yr = y + r * n;
    T *sr = sum + r * n, *or_ = out + r * n;
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
      store(sr + i, load(xr + i) + load(yr + i));
      total += load(sr + i);
    }
    float mean = total / n, squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) {
      float d = load(sr + i) - mean;
      squares += d * d;
    }
    float scale = 1.0f / std::sqrt(squares / n + eps);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      store(or_ + i, (load(sr + i) - mean) * scale * load(w + i) + load(b + i));
  }
}

#define EXPORT(T, NAME)                                                                       \
  extern "C" void NAME(const T* x, const T* y, const T* w, const T* b, T* sum, T* out,        \
                       int64_t rows, int64_t n, float eps) {                                  \
    add_norm<T>(x, y, w, b, sum, out, rows, n, eps);                                          \
  }
EXPORT(float, add_norm_float32)
EXPORT(bf16, add_norm_bfloat16)
"""
ADD_NORM = cpp.kernels(SOURCE, "add_norm")


guards = (
    "x, y, weight, bias: float32 or bfloat16, same dtype, contiguous, not empty, cpu",
    "x, y: shape (..., n)",
    "weight, bias: shape (n)",
)


def pattern(x, y, weight, bias, shape: tuple, eps: float):
    total = x + y
    return total, torch.nn.functional.layer_norm(total, shape, weight, bias, eps)


def replacement_args(x, y, weight, bias, shape, eps):
    return x, y, weight, bias, eps


def add_layer_norm(x, y, weight, bias, eps):
    x, y = x.contiguous(), y.contiguous()
    total, out = torch.empty_like(x), torch.empty_like(x)
    n = weight.numel()
    ADD_NORM[x.dtype](
        x, y, weight, bias, total,
        out, x.numel() // n, n, eps,
    )  # fmt: skip
    return total, out


def replacement_func():
    return add_layer_norm
