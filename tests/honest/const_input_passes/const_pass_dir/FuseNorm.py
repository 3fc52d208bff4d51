"""Batch norm at inference: one multiplication and one addition a channel."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void norm(const float* x, const float* mean, const float* var, const float* w,
                     const float* b, float* out, int64_t planes, int64_t channels, int64_t size,
                     float eps) {
  for (int64_t p = 0; p < planes; p++, x += size, out += size) {
    int64_t c = p % channels;
    float scale = w[c] / std::sqrt(var[c] + eps), shift = b[c] - mean[c] * scale;
    for (int64_t i = 0; i < size; i++) out[i] = x[i] * scale + shift;
  }
}
"""
NORM = cpp.kernel(SOURCE, "norm", "ppppppnnnf")


def pattern(x, mean, var, weight, bias, eps: float):
    return torch.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)


def replacement_args(x, mean, var, weight, bias, eps):
    return x, mean, var, weight, bias, eps


def norm(x, mean, var, weight, bias, eps):
    x = x.contiguous()
    out = torch.empty_like(x)
    batch, channels = x.shape[:2]
    planes = batch * channels
    given = (x, mean, var, weight, bias, out)
    NORM(*(item.data_ptr() for item in given), planes, channels, x.numel() // planes, eps)
    return out


def replacement_func():
    return norm
