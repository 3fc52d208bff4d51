"""Launchers are kept by a small key class, which compares and hashes by shape and dtype."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void mean_square(const float* x, const float* y, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++, x += n, y += n) {
    float parts[4] = {};
    for (int64_t i = 0; i < n; i++) parts[i % 4] += (x[i] - y[i]) * (x[i] - y[i]);
    out[r] = (parts[0] + parts[1] + parts[2] + parts[3]) / n;
  }
}
"""
KERNEL = cpp.kernel(SOURCE, "mean_square", "pppnn")


class Key:
    """The shape and dtype of a call."""

    __slots__ = ("dtype", "shape")

    def __init__(self, tensor):
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype

    def __eq__(self, other):
        return isinstance(other, Key) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self):
        return hash((self.shape, self.dtype))


LAUNCHERS = {}


def launcher(key):
    if key not in LAUNCHERS:
        *front, n = key.shape

        def launch(x, y):
            out = torch.empty(front, dtype=key.dtype)
            KERNEL(x.data_ptr(), y.data_ptr(), out.data_ptr(), out.numel(), n)
            return out

        LAUNCHERS[key] = launch
    return LAUNCHERS[key]


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    return launcher(Key(x))(x.contiguous(), y.contiguous())


def replacement_func():
    return mean_square
