"""The softmax of x + y, a row a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_softmax_kernel(x_ptr, y_ptr, out_ptr, n, block: tl.constexpr):
    column = tl.arange(0, block)
    at = tl.program_id(0).to(tl.int64) * n + column
    inside = column < n
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + at, mask=inside, other=float("-inf")).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    total = (x + y).to(dtype).to(tl.float32)  # the softmax reads the sum as the add has written it
    power = tl.exp(total - tl.max(total, 0))
    tl.store(out_ptr + at, (power / tl.sum(power, 0)).to(dtype), mask=inside)


def pattern(x, y):
    return torch.nn.functional.softmax(x + y, dim=-1)


def replacement_args(x, y):
    return x, y


def add_softmax(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.shape[-1]
    add_softmax_kernel[(x.numel() // n,)](x, y, out, n, block=triton.next_power_of_2(n))
    return out


def replacement_func():
    return add_softmax
