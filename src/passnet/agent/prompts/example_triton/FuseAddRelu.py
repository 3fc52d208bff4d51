"""x + y and its relu, in one pass over memory."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, out_ptr, size, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < size
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    total = (x + y).to(dtype).to(tl.float32)  # the relu reads the sum as the add has written it
    tl.store(out_ptr + at, tl.where(total < 0.0, 0.0, total).to(dtype), mask=inside)


def pattern(x, y):
    return torch.nn.functional.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    size = x.numel()
    add_relu_kernel[(triton.cdiv(size, BLOCK),)](x, y, out, size, block=BLOCK)
    return out


def replacement_func():
    return add_relu
