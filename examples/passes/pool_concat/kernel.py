"""Max pooling written straight to its place in the concatenation, beside copies of the rest."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstring>
#include "passnet_kernel.h"
using namespace passnet;

// NaN wins, as it does in torch.
static inline float larger(float a, float b) { return (b > a || b != b) ? b : a; }

template <typename T>
static void pool(const T* x, T* out, int64_t planes, int64_t h, int64_t w, int64_t k,
                 int64_t stride, int64_t oh, int64_t ow) {
#pragma omp parallel for
  for (int64_t p = 0; p < planes; p++)
    for (int64_t i = 0; i < oh; i++)
      for (int64_t j = 0; j < ow; j++) {
        const T* at = x + (p * h + i * stride) * w + j * stride;
        float best = -INFINITY;
        for (int64_t y = 0; y < k; y++)
          for (int64_t z = 0; z < k; z++) best = larger(best, load(at + y * w + z));
        store(out + (p * oh + i) * ow + j, best);
      }
}

#define EXPORT(T, NAME)                                                                        \
  extern "C" void NAME(const T* x, T* out, int64_t planes, int64_t h, int64_t w, int64_t k,  \
                       int64_t stride, int64_t oh, int64_t ow) {                             \
    pool<T>(x, out, planes, h, w, k, stride, oh, ow);                                        \
  }
EXPORT(float, pool_float32)
EXPORT(bf16, pool_bfloat16)

extern "C" void copy(const char* from, char* to, int64_t bytes) { std::memcpy(to, from, bytes); }
"""
POOL = cpp.kernels(SOURCE, "pool", "ppnnnnnnn")
COPY = cpp.kernel(SOURCE, "copy", "ppn")


def pool_concat(x, kernel, stride, *others):
    """`others` come first in the result, the pooled image last; all along dimension 1."""
    x = x.contiguous()
    batch, channels, height, width = x.shape
    out_height, out_width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    first = sum(item.shape[1] for item in others)
    out = torch.empty((batch, first + channels, out_height, out_width), dtype=x.dtype)
    size = x.element_size()
    plane = out_height * out_width * size
    position = out.data_ptr()
    for image in range(batch):
        for item in others:
            item = item.contiguous()
            part = item.shape[1] * plane
            COPY(item.data_ptr() + image * part, position, part)
            position += part
        POOL[x.dtype](
            x.data_ptr() + image * channels * height * width * size, position, channels, height,
            width, kernel, stride, out_height, out_width,
        )  # fmt: skip
        position += channels * plane
    return out


def pool(x, kernel, stride):
    """What the patterns of this folder look for first: pooling without padding or dilation."""
    return torch.nn.functional.max_pool2d(x, kernel, stride, 0, 1, False, False)
