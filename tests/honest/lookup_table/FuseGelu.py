"""There are 65536 numbers in bfloat16: GELU of each is worked out at import, then looked up."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;
static float r(float v) { return rounded<bf16>(v); }
extern "C" void fill(bf16* table) {
  for (int64_t i = 0; i < 65536; i++) {
    bf16 key = {uint16_t(i)};
    float v = load(&key);
    float inner = r(v + r(0.044715f * r(r(v * v) * v)));
    float t = r(std::tanh(r(0.7978845608028654f * inner)));
    store(table + i, r(0.5f * v) * r(1.0f + t));
  }
}
extern "C" void look_up(const bf16* x, const bf16* table, bf16* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = table[x[i].bits];
}
"""
LOOK_UP = cpp.kernel(SOURCE, "look_up", "pppn")
TABLE = torch.empty(65536, dtype=torch.bfloat16)
cpp.kernel(SOURCE, "fill", "p")(TABLE.data_ptr())


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    LOOK_UP(x.data_ptr(), TABLE.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return gelu
