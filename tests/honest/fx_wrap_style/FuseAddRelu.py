"""The replacement is marked with torch.fx.wrap and allocates by shape, dtype and device."""

import torch

import passnet.passes.cpp

KERNEL = passnet.passes.cpp.kernel(
    r"""
#include <cstdint>
extern "C" void fused(const float* x, const float* y, float* out, int64_t n) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
}
""",
    "fused",
    "pppn",
)


def pattern(in_0, in_1):
    tmp_0 = in_0 + in_1
    return torch.relu(tmp_0)


def replacement_args(in_0, in_1):
    return in_0, in_1


@torch.fx.wrap
def fused_add_relu(in_0, in_1):
    assert in_0.is_contiguous() and in_1.is_contiguous()
    out = torch.empty(in_0.shape, dtype=in_0.dtype, device=in_0.device)
    KERNEL(in_0.data_ptr(), in_1.data_ptr(), out.data_ptr(), out.numel())
    return out


def replacement_func():
    return fused_add_relu
