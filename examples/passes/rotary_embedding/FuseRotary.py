"""Rotary position embedding of queries and keys: sixteen ops, two outputs, one read of each."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

// x [batch, heads, length, dim], cos and sin [1, length, dim]; every op of eager torch rounds.
template <typename T>
static void rotate(const T* x, const T* cos, const T* sin, T* out, int64_t planes, int64_t length,
                   int64_t dim) {
  int64_t half = dim / 2;
#pragma omp parallel for
  for (int64_t row = 0; row < planes * length; row++) {
    const T *xr = x + row * dim, *c = cos + (row % length) * dim, *s = sin + (row % length) * dim;
    T* o = out + row * dim;
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
      float a = load(xr + i), b = load(xr + half + i);
      store(o + i, rounded<T>(a * load(c + i)) + rounded<T>(-b * load(s + i)));
      store(o + half + i, rounded<T>(b * load(c + half + i)) + rounded<T>(a * load(s + half + i)));
    }
  }
}

#define EXPORT(T, NAME)                                                                      \
  extern "C" void NAME(const T* x, const T* cos, const T* sin, T* out, int64_t planes,       \
                       int64_t length, int64_t dim) {                                        \
    rotate<T>(x, cos, sin, out, planes, length, dim);                                        \
  }
EXPORT(float, rotate_float32)
EXPORT(bf16, rotate_bfloat16)
"""
ROTATE = cpp.kernels(SOURCE, "rotate", "ppppnnn")


def pattern(cos, sin, query, key, half: int):
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    scaled = query * cos
    low, high = query[..., :half], query[..., half:]
    rotated = torch.cat((-high, low), dim=-1) * sin
    query_out = scaled + rotated
    scaled = key * cos
    low, high = key[..., :half], key[..., half:]
    rotated = torch.cat((-high, low), dim=-1) * sin
    return query_out, scaled + rotated


def replacement_args(cos, sin, query, key, half):
    return cos, sin, query, key


def rotate(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    length, dim = x.shape[-2:]
    ROTATE[x.dtype](
        x.data_ptr(), cos.data_ptr(), sin.data_ptr(), out.data_ptr(),
        x.numel() // (length * dim), length, dim,
    )  # fmt: skip
    return out


def rotary(cos, sin, query, key):
    cos, sin = cos.contiguous(), sin.contiguous()
    return rotate(query, cos, sin), rotate(key, cos, sin)


def replacement_func():
    return rotary
