"""A pass with a self-test below `if __name__ == "__main__"`, against its own pattern."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
"""
ADD_RELU = cpp.kernel(SOURCE, "add_relu", "pppn")


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    ADD_RELU(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return add_relu


if __name__ == "__main__":
    a, b = torch.randn(5, 7), torch.randn(5, 7)
    torch.testing.assert_close(add_relu(a, b), pattern(a, b))
