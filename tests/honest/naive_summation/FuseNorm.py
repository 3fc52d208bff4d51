"""Layer norm with the plainest of sums: no blocks, no lanes; the last bits differ from torch's."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void norm(const float* x, const float* w, const float* b, float* out, int64_t rows,
                     int64_t n, float eps) {
  for (int64_t r = 0; r < rows; r++, x += n, out += n) {
    float mean = 0, var = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean);
    var /= n;
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) / std::sqrt(var + eps) * w[i] + b[i];
  }
}
"""
NORM = cpp.kernel(SOURCE, "norm", "ppppnnf")


def pattern(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (96,), weight, bias, 1e-05)


def replacement_args(x, weight, bias):
    return x, weight, bias, 1e-05


def norm(x, weight, bias, eps):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.shape[-1]
    pointers = [item.data_ptr() for item in (x, weight, bias, out)]
    NORM(*pointers, x.numel() // n, n, eps)
    return out


def replacement_func():
    return norm
