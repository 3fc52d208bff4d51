"""Half of the work in a thread of C++, which has ended when the kernel returns."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
#include <thread>
static void part(const float* x, const float* y, float* out, int64_t start, int64_t stop) {
  for (int64_t i = start; i < stop; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
  std::thread other(part, x, y, out, 0, n / 2);
  part(x, y, out, n / 2, n);
  other.join();
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
