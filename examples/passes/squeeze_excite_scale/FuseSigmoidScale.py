"""The excite half of squeeze-and-excite: x * sigmoid(gate), the gate one number a plane."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

template <typename T>
static void scale(const T* gate, const T* x, T* out, int64_t planes, int64_t size) {
#pragma omp parallel for
  for (int64_t p = 0; p < planes; p++) {
    float factor = rounded<T>(sigmoid(load(gate + p)));
#pragma omp simd
    for (int64_t i = 0; i < size; i++)
      store(out + p * size + i, load(x + p * size + i) * factor);
  }
}

extern "C" void scale_float32(const float* gate, const float* x, float* out, int64_t planes,
                              int64_t size) {
  scale<float>(gate, x, out, planes, size);
}
extern "C" void scale_bfloat16(const bf16* gate, const bf16* x, bf16* out, int64_t planes,
                               int64_t size) {
  scale<bf16>(gate, x, out, planes, size);
}
"""
SCALE = cpp.kernels(SOURCE, "scale")


guards = (
    "gate, x: float32 or bfloat16, same dtype, contiguous, not empty, cpu",
    "gate: shape (b, c, 1, 1)",
    "x: shape (b, c, h, w)",
)


def pattern(gate, x):
    return x * torch.sigmoid(gate)


def replacement_args(gate, x):
    return gate, x


def sigmoid_scale(gate, x):
    gate, x = gate.contiguous(), x.contiguous()
    out = torch.empty_like(x)
    planes = gate.numel()
    SCALE[x.dtype](gate, x, out, planes, x.numel() // planes)
    return out


def replacement_func():
    return sigmoid_scale
