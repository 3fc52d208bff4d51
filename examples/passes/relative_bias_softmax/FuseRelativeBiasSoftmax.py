"""Swin's window attention weights: look up the bias, add it, softmax. Nine ops, one pass a row."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <vector>
#include "passnet_kernel.h"
using namespace passnet;

// index [n, n] into table [entries, heads]; scores [windows, heads, n, n]. The bias of a head is
// gathered once and then serves all windows. An index counts from the end if it is negative, as in
// torch; one that is out of range, for which eager torch raises, gives NaN.
template <typename T>
static void bias_softmax(const int64_t* index, const T* table, const T* scores, T* out,
                         int64_t windows, int64_t heads, int64_t n, int64_t entries) {
  std::vector<float> gathered(heads * n * n);
  float* bias = gathered.data();
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < n * n; i++) {
      int64_t entry = index[i] < 0 ? index[i] + entries : index[i];
      bool is_there = entry >= 0 && entry < entries;
      bias[h * n * n + i] = is_there ? load(table + entry * heads + h) : NAN;
    }
  int64_t padded = (n + 15) / 16 * 16;  // whole vectors, the rest filled with minus infinity
#pragma omp parallel
  {
    std::vector<float> buffer(padded, -INFINITY);
    float* row = buffer.data();
#pragma omp for
    for (int64_t r = 0; r < windows * heads * n; r++) {
      const T* x = scores + r * n;
      const float* b = bias + (r % (heads * n)) * n;
      T* o = out + r * n;
      float top = -INFINITY;
#pragma omp simd
      for (int64_t i = 0; i < n; i++) row[i] = rounded<T>(load(x + i) + b[i]);
#pragma omp simd reduction(max : top)
      for (int64_t i = 0; i < padded; i++) top = row[i] > top ? row[i] : top;
      float total = 0;
#pragma omp simd reduction(+ : total)
      for (int64_t i = 0; i < padded; i++) {
        row[i] = passnet::exp(row[i] - top);
        total += row[i];
      }
      float factor = 1.0f / total;
#pragma omp simd
      for (int64_t i = 0; i < n; i++) store(o + i, row[i] * factor);
      for (int64_t i = n; i < padded; i++) row[i] = -INFINITY;
    }
  }
}

#define EXPORT(T, NAME)                                                                    \
  extern "C" void NAME(const int64_t* index, const T* table, const T* scores, T* out,      \
                       int64_t windows, int64_t heads, int64_t n, int64_t entries) {       \
    bias_softmax<T>(index, table, scores, out, windows, heads, n, entries);                \
  }
EXPORT(float, bias_softmax_float32)
EXPORT(bf16, bias_softmax_bfloat16)
"""
BIAS_SOFTMAX = cpp.kernels(SOURCE, "bias_softmax")


guards = (
    "index: int64",
    "table, scores: float32 or bfloat16, same dtype",
    "index, table, scores: contiguous, not empty, cpu",
    "index: shape (n, n)",
    "table: shape (entries, heads)",
    "scores: shape (windows, heads, n, n)",
)


def pattern(index, table, scores, n: int):
    bias = table[index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
    weights = torch.nn.functional.softmax(scores + bias, -1)
    return torch.nn.functional.dropout(weights, 0.0, False, False)


def replacement_args(index, table, scores, n):
    return index, table, scores


def bias_softmax(index, table, scores):
    index, table, scores = index.contiguous(), table.contiguous(), scores.contiguous()
    out = torch.empty_like(scores)
    windows, heads, n, _ = scores.shape
    BIAS_SOFTMAX[scores.dtype](index, table, scores, out, windows, heads, n, table.shape[0])
    return out


def replacement_func():
    return bias_softmax
