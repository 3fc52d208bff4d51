"""Max pooling written straight to its place in the concatenation, beside copies of the rest."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstring>
#include "passnet_kernel.h"
using namespace passnet;

// NaN wins, as it does in torch.
static inline float larger(float a, float b) { return (b > a || b != b) ? b : a; }

// x [batch, channels, h, w]; the pooled image is put into out [batch, all, oh, ow] behind the first
// `before` channels.
template <typename T>
static void pool(const T* x, T* out, int64_t batch, int64_t channels, int64_t h, int64_t w,
                 int64_t k, int64_t stride, int64_t oh, int64_t ow, int64_t before, int64_t all) {
#pragma omp parallel for
  for (int64_t p = 0; p < batch * channels; p++) {
    T* to = out + ((p / channels) * all + before + p % channels) * oh * ow;
    for (int64_t i = 0; i < oh; i++)
      for (int64_t j = 0; j < ow; j++) {
        const T* at = x + (p * h + i * stride) * w + j * stride;
        float best = -INFINITY;
        for (int64_t y = 0; y < k; y++)
          for (int64_t z = 0; z < k; z++) best = larger(best, load(at + y * w + z));
        store(to + i * ow + j, best);
      }
  }
}

#define EXPORT(T, NAME)                                                                        \
  extern "C" void NAME(const T* x, T* out, int64_t batch, int64_t channels, int64_t h,         \
                       int64_t w, int64_t k, int64_t stride, int64_t oh, int64_t ow,           \
                       int64_t before, int64_t all) {                                          \
    pool<T>(x, out, batch, channels, h, w, k, stride, oh, ow, before, all);                    \
  }
EXPORT(float, pool_float32)
EXPORT(bf16, pool_bfloat16)

// So many bytes of each image, to their place in each image of the result.
extern "C" void copy(const char* from, char* to, int64_t batch, int64_t bytes, int64_t before,
                     int64_t all) {
  for (int64_t b = 0; b < batch; b++) std::memcpy(to + b * all + before, from + b * bytes, bytes);
}
"""
POOL = cpp.kernels(SOURCE, "pool")
COPY = cpp.kernel(SOURCE, "copy")


def pool_concat(x, kernel, stride, *others):
    """`others` come first in the result, the pooled image last; all along dimension 1."""
    batch, channels, height, width = x.shape
    out_height, out_width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    first = sum(other.shape[1] for other in others)
    out = torch.empty((batch, first + channels, out_height, out_width), dtype=x.dtype)
    plane = out_height * out_width * x.element_size()
    before = 0
    for other in others:
        part = other.shape[1] * plane
        COPY(other, out, batch, part, before, (first + channels) * plane)
        before += part
    POOL[x.dtype](
        x, out, batch, channels, height, width, kernel, stride, out_height, out_width, first,
        first + channels,
    )  # fmt: skip
    return out


def pool(x, kernel, stride):
    """What the patterns of this folder look for first: pooling without padding or dilation."""
    return torch.nn.functional.max_pool2d(x, kernel, stride, 0, 1, False, False)
