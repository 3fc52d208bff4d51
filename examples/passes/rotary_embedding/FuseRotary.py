"""Rotary position embedding of queries and keys: sixteen ops, two outputs, one read of each."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

// x and out [batch, heads, length, dim] with strides of their own, cos and sin [1, length, dim];
// every op of eager torch rounds.
template <typename T>
static void rotate(const T* x, const T* cos, const T* sin, T* out, int64_t batch, int64_t heads,
                   int64_t length, int64_t dim, int64_t xb, int64_t xh, int64_t xl, int64_t ob,
                   int64_t oh, int64_t ol) {
  int64_t half = dim / 2;
#pragma omp parallel for
  for (int64_t row = 0; row < batch * heads * length; row++) {
    int64_t l = row % length, h = row / length % heads, b = row / length / heads;
    const T *xr = x + b * xb + h * xh + l * xl, *c = cos + l * dim, *s = sin + l * dim;
    T* o = out + b * ob + h * oh + l * ol;
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
      float a = load(xr + i), b = load(xr + half + i);
      store(o + i, rounded<T>(a * load(c + i)) + rounded<T>(-b * load(s + i)));
      store(o + half + i, rounded<T>(b * load(c + half + i)) + rounded<T>(a * load(s + half + i)));
    }
  }
}

#define EXPORT(T, NAME)                                                                        \
  extern "C" void NAME(const T* x, const T* cos, const T* sin, T* out, int64_t batch,          \
                       int64_t heads, int64_t length, int64_t dim, int64_t xb, int64_t xh,     \
                       int64_t xl, int64_t ob, int64_t oh, int64_t ol) {                       \
    rotate<T>(x, cos, sin, out, batch, heads, length, dim, xb, xh, xl, ob, oh, ol);            \
  }
EXPORT(float, rotate_float32)
EXPORT(bf16, rotate_bfloat16)
"""
ROTATE = cpp.kernels(SOURCE, "rotate")

guards = (
    "cos, sin, query, key: float32 or bfloat16, same dtype, not empty, cpu",
    "query: shape (batch, heads, length, dim)",
    "key: shape (batch, groups, length, dim)",
    "cos, sin: shape (1, length, dim)",
    "dim: multiple of 2",
)


def guard(query, key, half):
    return half * 2 == query.shape[-1] and query.stride(-1) == key.stride(-1) == 1


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
    out = torch.empty_like(x)  # in the memory order of x, as eager torch has it
    ROTATE[x.dtype](x, cos, sin, out, *x.shape, *x.stride()[:3], *out.stride()[:3])
    return out


def rotary(cos, sin, query, key):
    cos, sin = cos.contiguous(), sin.contiguous()
    return rotate(query, cos, sin), rotate(key, cos, sin)


def replacement_func():
    return rotary
