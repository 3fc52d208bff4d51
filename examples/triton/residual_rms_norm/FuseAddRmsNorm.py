"""x + y and its root-mean-square norm: nine ops, each row read once and written twice."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(x_ptr, y_ptr, weight_ptr, total_ptr, out_ptr, n, eps, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    total = (x + y).to(total_ptr.dtype.element_ty)  # the norm reads it as the add has written it
    tl.store(total_ptr + row + at, total, mask=inside)
    wide = total.to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide) / n + eps)
    normed = (wide * scale).to(dtype).to(tl.float32)  # written before the weight is applied
    tl.store(out_ptr + row + at, (weight * normed).to(dtype), mask=inside)


guards = (
    "x, y, weight: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "x, y: shape (..., n)",
    "weight: shape (n)",
)


def guard(x, dtype):
    return dtype == x.dtype


def pattern(x, y, weight, eps: float, dtype: torch.dtype):
    total = x + y
    wide = total.to(torch.float32)
    square = wide.pow(2)
    mean = square.mean(-1, keepdim=True)
    scale = torch.rsqrt(mean + eps)
    return total, weight * (wide * scale).to(dtype)


def replacement_args(x, y, weight, eps, dtype):
    return x, y, weight, eps, dtype


def add_rms_norm(x, y, weight, eps, dtype):
    shape = x.shape if x.numel() >= y.numel() else y.shape
    x, y, weight = x.expand(shape).contiguous(), y.expand(shape).contiguous(), weight.contiguous()
    total, out = torch.empty_like(x), torch.empty_like(x, dtype=dtype)
    n = weight.numel()
    block = triton.next_power_of_2(n)
    add_rms_norm_kernel[(x.numel() // n,)](
        x, y, weight, total, out, n, eps, block=block, num_warps=8 if block > 2048 else 4
    )
    return total, out


def replacement_func():
    return add_rms_norm
