"""The width is a constant of the kernel's text; lru_cache holds one kernel a width and dtype."""

import functools
import string

import torch

from passnet.passes import cpp

TEXT = string.Template(r"""
#include "passnet_kernel.h"
using namespace passnet;
typedef $kind T;
constexpr int64_t N = $width;
extern "C" void rms_norm(const T* x, const T* w, T* out, int64_t rows, float eps) {
  for (int64_t r = 0; r < rows; r++, x += N, out += N) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < N; i++) squares += load(x + i) * load(x + i);
    float scale = 1.0f / std::sqrt(squares / N + eps);
    for (int64_t i = 0; i < N; i++) store(out + i, load(w + i) * rounded<T>(load(x + i) * scale));
  }
}
""")
KINDS = {torch.float32: "float", torch.bfloat16: "bf16"}


@functools.lru_cache(maxsize=16)
def kernel(dtype, width):
    text = TEXT.substitute(kind=KINDS[dtype], width=width)
    return cpp.kernel(text, "rms_norm", "pppnf")


def pattern(x, weight, eps: float, dtype: torch.dtype):
    wide = x.to(torch.float32)
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * (wide * scale).to(dtype)


def replacement_args(x, weight, eps, dtype):
    return x, weight, eps


def rms_norm(x, weight, eps):
    x = x.contiguous()
    out = torch.empty_like(x)
    width = x.shape[-1]
    launch = kernel(x.dtype, width)
    launch(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.numel() // width, eps)
    return out


def replacement_func():
    return rms_norm
