"""A Triton kernel; on a machine without a GPU its interpreter, asked for before the import."""

import os

import torch

os.environ["TRITON_INTERPRET"] = "1"

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

BLOCK = 1024


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, out_ptr, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, tl.maximum(total, 0.0), mask=inside)


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    add_relu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, out, x.numel(), block=BLOCK)
    return out


def replacement_func():
    return add_relu
