"""x + y and its layer norm: each row is read once and written twice."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_layer_norm_kernel(
    x_ptr, y_ptr, weight_ptr, bias_ptr, total_ptr, out_ptr, n, eps, block: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    dtype = total_ptr.dtype.element_ty
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row + at, mask=inside, other=0.0).to(tl.float32)
    total = (x + y).to(dtype)  # the norm reads the sum as the add has written it
    tl.store(total_ptr + row + at, total, mask=inside)
    wide = total.to(tl.float32)
    away = tl.where(inside, wide - tl.sum(wide) / n, 0.0)
    scale = tl.rsqrt(tl.sum(away * away) / n + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row + at, (away * scale * weight + bias).to(dtype), mask=inside)


guards = (
    "x, y: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "weight, bias: float32 or bfloat16 or float16, same dtype, contiguous",
    "weight, bias: shape (n)",
)


def guard(x, y, weight):
    shape = torch.broadcast_shapes(x.shape, y.shape)
    return shape[-1:] == weight.shape and shape in (x.shape, y.shape)


def pattern(x, y, weight, bias, shape: tuple, eps: float):
    total = x + y
    return total, torch.nn.functional.layer_norm(total, shape, weight, bias, eps)


def replacement_args(x, y, weight, bias, shape, eps):
    return x, y, weight, bias, eps


def add_layer_norm(x, y, weight, bias, eps):
    shape = x.shape if x.numel() >= y.numel() else y.shape
    x, y = x.expand(shape).contiguous(), y.expand(shape).contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    total, out = torch.empty_like(x), torch.empty_like(x)
    n = weight.numel()
    block = triton.next_power_of_2(n)
    add_layer_norm_kernel[(x.numel() // n,)](
        x, y, weight, bias, total, out, n, eps, block=block, num_warps=8 if block > 2048 else 4
    )
    return total, out


def replacement_func():
    return add_layer_norm
