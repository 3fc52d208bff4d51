"""The unrolling depends on what torch says of the processor; nothing is computed by torch."""

import torch

from passnet.passes import cpp

LANES = {"AVX512": 16, "AVX2": 8}.get(torch.backends.cpu.get_cpu_capability(), 4)
SOURCE = (
    f"constexpr long LANES = {LANES};"
    + r"""
extern "C" void add_relu(const float* x, const float* y, float* out, long n) {
  long i = 0;
  for (; i + LANES <= n; i += LANES)
    for (long k = i; k < i + LANES; k++) out[k] = x[k] + y[k] < 0 ? 0.0f : x[k] + y[k];
  for (; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
"""
)
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
