"""Scale, mask, softmax in float32, and the cast back: five ops, one pass over each row."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <vector>
#include "passnet_kernel.h"
using namespace passnet;

// scores [batch, heads, n, m], mask [batch or 1, 1, n, m].
template <typename T>
static void masked_softmax(const T* scores, const T* mask, T* out, int64_t batch, int64_t heads,
                           int64_t n, int64_t m, int64_t mask_batch, float scale) {
#pragma omp parallel
  {
    std::vector<float> buffer(m);
    float* row = buffer.data();
#pragma omp for
    for (int64_t r = 0; r < batch * heads * n; r++) {
      int64_t image = r / (heads * n);
      const T* x = scores + r * m;
      const T* y = mask + ((mask_batch == 1 ? 0 : image) * n + r % n) * m;
      T* o = out + r * m;
      float top = -INFINITY;
#pragma omp simd reduction(max : top)
      for (int64_t i = 0; i < m; i++) {
        row[i] = rounded<T>(rounded<T>(load(x + i) * scale) + load(y + i));
        top = row[i] > top ? row[i] : top;
      }
      float total = 0;
#pragma omp simd reduction(+ : total)
      for (int64_t i = 0; i < m; i++) {
        row[i] = passnet::exp(row[i] - top);
        total += row[i];
      }
      float factor = 1.0f / total;
#pragma omp simd
      for (int64_t i = 0; i < m; i++) store(o + i, row[i] * factor);
    }
  }
}

#define EXPORT(T, NAME)                                                                       \
  extern "C" void NAME(const T* scores, const T* mask, T* out, int64_t batch, int64_t heads,  \
                       int64_t n, int64_t m, int64_t mask_batch, float scale) {               \
    masked_softmax<T>(scores, mask, out, batch, heads, n, m, mask_batch, scale);              \
  }
EXPORT(float, masked_softmax_float32)
EXPORT(bf16, masked_softmax_bfloat16)
"""
MASKED_SOFTMAX = cpp.kernels(SOURCE, "masked_softmax")


guards = (
    "scores, mask: float32 or bfloat16, same dtype, contiguous, cpu",
    "scores: shape (b, heads, n, m), not empty",
    "mask: shape (b, 1, n, m) or (1, 1, n, m)",
)


def guard(scores, dtype):
    return dtype == scores.dtype


def pattern(scores, mask, scale: float, dtype: torch.dtype):
    masked = scores * scale + mask
    weights = torch.nn.functional.softmax(masked, dim=-1, dtype=torch.float32).to(dtype)
    return torch.nn.functional.dropout(weights, p=0.0, training=False)


def replacement_args(scores, mask, scale, dtype):
    return scores, mask, scale


def masked_softmax(scores, mask, scale):
    scores, mask = scores.contiguous(), mask.contiguous()
    out = torch.empty_like(scores)
    MASKED_SOFTMAX[scores.dtype](scores, mask, out, *scores.shape, mask.shape[0], scale)
    return out


def replacement_func():
    return masked_softmax
