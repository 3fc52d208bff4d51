"""A callable object that notes the shapes it is called on, for its repr."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
"""


class AddRelu:
    def __init__(self):
        self.kernel = cpp.kernel(SOURCE, "add_relu", "pppn")
        self.shapes = set()

    def __call__(self, x, y):
        self.shapes.add(tuple(x.shape))
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        self.kernel(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out

    def __repr__(self):
        return f"AddRelu(shapes={sorted(self.shapes)})"


ADD_RELU = AddRelu()


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def replacement_func():
    return ADD_RELU
