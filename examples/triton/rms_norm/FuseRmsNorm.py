"""The root-mean-square norm of Llama and its kin: eight ops, each row read and written once."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n, eps, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x) / n + eps)
    normed = (x * scale).to(dtype).to(tl.float32)  # written before the weight is applied
    tl.store(out_ptr + row + at, (weight * normed).to(dtype), mask=inside)


guards = (
    "x, weight: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "x: shape (..., n)",
    "weight: shape (n)",
)


def guard(x, dtype):
    return dtype == x.dtype


def pattern(x, weight, eps: float, dtype: torch.dtype):
    wide = x.to(torch.float32)
    square = wide.pow(2)
    mean = square.mean(-1, keepdim=True)
    scale = torch.rsqrt(mean + eps)
    return weight * (wide * scale).to(dtype)


def replacement_args(x, weight, eps, dtype):
    return x, weight, eps, dtype


def rms_norm(x, weight, eps, dtype):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x, dtype=dtype)
    n = weight.numel()
    block = triton.next_power_of_2(n)
    rms_norm_kernel[(x.numel() // n,)](
        x, weight, out, n, eps, block=block, num_warps=8 if block > 2048 else 4
    )
    return out


def replacement_func():
    return rms_norm
