"""A kernel where there is a compiler, numpy where there is none; both are the pass's own work."""

import numpy as np
import torch

from passnet.errors import PassError
from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void mul_add_relu(const float* x, const float* y, const float* z, float* out, int64_t n,
                             int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    float v = x[i] * y[i % width] + z[i];
    out[i] = v < 0 ? 0.0f : v;
  }
}
"""
try:
    KERNEL = cpp.kernel(SOURCE, "mul_add_relu", "ppppnn")
except PassError as cause:
    print(f"no kernel, numpy will do: {cause}")
    KERNEL = None


def pattern(x, y, z):
    total = x * y
    total += z
    return torch.nn.functional.relu(total, inplace=True)


def replacement_args(x, y, z):
    return x, y, z


def mul_add_relu(x, y, z):
    x, y, z = x.contiguous(), y.contiguous(), z.contiguous()
    out = torch.empty_like(x)
    if KERNEL is None:
        view = out.numpy()
        np.multiply(x.numpy(), y.numpy(), out=view)
        np.add(view, z.numpy(), out=view)
        np.maximum(view, 0, out=view)
    else:
        pointers = (x.data_ptr(), y.data_ptr(), z.data_ptr(), out.data_ptr())
        KERNEL(*pointers, x.numel(), y.numel())
    return out


def replacement_func():
    return mul_add_relu
