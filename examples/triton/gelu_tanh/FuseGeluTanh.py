"""The tanh form of GELU, spelled out in eight ops by GPT-2: one read, one write.

Every op of eager torch rounds its result. That matters in the half dtypes: where tanh is near -1,
1 + tanh is left with its last bits only.
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def rounded(x, dtype: tl.constexpr):
    return x.to(dtype).to(tl.float32)


@triton.jit
def tanh(x):
    e = tl.exp(-2.0 * tl.abs(x))
    size = 1.0 - 2.0 * e / (1.0 + e)
    return tl.where(x < 0, -size, size)


@triton.jit
def gelu_tanh_kernel(x_ptr, out_ptr, size, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < size
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    cube = rounded(rounded(x * x, dtype) * x, dtype)
    inner = rounded(x + rounded(0.044715 * cube, dtype), dtype)
    t = rounded(tanh(rounded(0.7978845608028654 * inner, dtype)), dtype)
    out = rounded(0.5 * x, dtype) * rounded(1.0 + t, dtype)
    tl.store(out_ptr + at, out.to(dtype), mask=inside)


guards = ("x: float32 or bfloat16 or float16, contiguous",)


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu_tanh(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    size = x.numel()
    gelu_tanh_kernel[(triton.cdiv(size, BLOCK),)](x, out, size, block=BLOCK)
    return out


def replacement_func():
    return gelu_tanh
