"""Attention a query at a time; the row of weights lies in scratch memory that is kept by size."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
extern "C" void attention(const float* q, const float* k, const float* v, float* row, float* out,
                          int64_t planes, int64_t n, int64_t m, int64_t dim, float scale) {
  for (int64_t p = 0; p < planes; p++, k += m * dim, v += m * dim)
    for (int64_t r = 0; r < n; r++, q += dim, out += dim) {
      float top = -INFINITY, total = 0;
      for (int64_t j = 0; j < m; j++) {
        float dot = 0;
        for (int64_t i = 0; i < dim; i++) dot += q[i] * k[j * dim + i];
        row[j] = dot * scale;
        top = row[j] > top ? row[j] : top;
      }
      for (int64_t j = 0; j < m; j++) total += row[j] = passnet::exp(row[j] - top);
      for (int64_t i = 0; i < dim; i++) out[i] = 0;
      for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < dim; i++) out[i] += row[j] / total * v[j * dim + i];
    }
}
"""
ATTENTION = cpp.kernel(SOURCE, "attention", "pppppnnnnf")
SCRATCH = {}


def pattern(query, key, value, scale: float):
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    return torch.matmul(torch.nn.functional.softmax(scores, dim=-1), value)


def replacement_args(query, key, value, scale):
    return query, key, value, scale


def attention(query, key, value, scale):
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    *front, n, dim = query.shape
    m = key.shape[-2]
    if m not in SCRATCH:
        SCRATCH[m] = torch.empty(m, dtype=torch.float32)
    out = torch.empty_like(query)
    planes = query.numel() // (n * dim)
    given = (query, key, value, SCRATCH[m], out)
    ATTENTION(*(item.data_ptr() for item in given), planes, n, m, dim, scale)
    return out


def replacement_func():
    return attention
