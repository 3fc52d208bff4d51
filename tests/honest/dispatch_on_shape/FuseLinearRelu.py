"""A few rows are dotted with columns; many rows are done four at a time."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void few(const float* x, const float* w, const float* b, float* out, int64_t rows,
                    int64_t depth, int64_t width) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < width; j++) {
      float total = b[j];
      for (int64_t k = 0; k < depth; k++) total += x[r * depth + k] * w[k * width + j];
      out[r * width + j] = total > 0 ? total : 0.0f;
    }
}
extern "C" void many(const float* x, const float* w, const float* b, float* out, int64_t rows,
                     int64_t depth, int64_t width) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r += 4) {
    int64_t stop = r + 4 < rows ? r + 4 : rows;
    for (int64_t q = r; q < stop; q++)
      for (int64_t j = 0; j < width; j++) out[q * width + j] = b[j];
    for (int64_t k = 0; k < depth; k++)
      for (int64_t q = r; q < stop; q++) {
        float factor = x[q * depth + k];
#pragma omp simd
        for (int64_t j = 0; j < width; j++) out[q * width + j] += factor * w[k * width + j];
      }
    for (int64_t i = r * width; i < stop * width; i++) out[i] = out[i] > 0 ? out[i] : 0.0f;
  }
}
"""
FEW = cpp.kernel(SOURCE, "few", "ppppnnn")
MANY = cpp.kernel(SOURCE, "many", "ppppnnn")


def pattern(x, weight, bias):
    return torch.relu(torch.matmul(x, weight) + bias)


def replacement_args(x, weight, bias):
    return x, weight, bias


def linear_relu(x, weight, bias):
    x, weight = x.contiguous(), weight.contiguous()
    *front, depth = x.shape
    rows, width = x.numel() // depth, weight.shape[1]
    out = torch.empty((*front, width), dtype=x.dtype)
    launch = FEW if rows < 8 else MANY
    pointers = (x.data_ptr(), weight.data_ptr(), bias.data_ptr(), out.data_ptr())
    launch(*pointers, rows, depth, width)
    return out


def replacement_func():
    return linear_relu
