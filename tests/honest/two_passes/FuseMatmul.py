"""A batched product of any strides: the first has a transposed factor, the second has not."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void matmul(const float* a, const float* b, float* out, int64_t planes, int64_t rows,
                       int64_t depth, int64_t width, int64_t plane_step, int64_t depth_step,
                       int64_t width_step) {
  for (int64_t p = 0; p < planes; p++, b += plane_step)
    for (int64_t r = 0; r < rows; r++, a += depth, out += width)
      for (int64_t j = 0; j < width; j++) {
        float total = 0;
        for (int64_t k = 0; k < depth; k++) total += a[k] * b[k * depth_step + j * width_step];
        out[j] = total;
      }
}
"""
MATMUL = cpp.kernel(SOURCE, "matmul", "pppnnnnnnn")


def pattern(a, b):
    return torch.matmul(a, b)


def replacement_args(a, b):
    return a, b


def matmul(a, b):
    a = a.contiguous()
    *front, rows, depth = a.shape
    width = b.shape[-1]
    flat = b.reshape(-1, depth, width)
    out = torch.empty((*front, rows, width), dtype=a.dtype)
    MATMUL(
        a.data_ptr(), flat.data_ptr(), out.data_ptr(), flat.size(0), rows, depth, width,
        *flat.stride(),
    )  # fmt: skip
    return out


def replacement_func():
    return matmul
