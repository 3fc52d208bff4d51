"""Rotary position embedding of queries and keys: sixteen ops, two outputs, one read of each."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, num_rows, heads, length, half, image_stride,
    row_block: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * row_block + tl.arange(0, row_block)
    column = tl.arange(0, block)
    inside = (row < num_rows)[:, None] & (column < half)[None, :]
    low = row.to(tl.int64)[:, None] * 2 * half + column[None, :]
    angle = row // (heads * length) * image_stride + row % length * 2 * half
    angle = angle[:, None] + column[None, :]
    dtype = out_ptr.dtype.element_ty
    a = tl.load(x_ptr + low, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + low + half, mask=inside, other=0.0).to(tl.float32)
    cos_a = tl.load(cos_ptr + angle, mask=inside, other=0.0).to(tl.float32)
    cos_b = tl.load(cos_ptr + angle + half, mask=inside, other=0.0).to(tl.float32)
    sin_a = tl.load(sin_ptr + angle, mask=inside, other=0.0).to(tl.float32)
    sin_b = tl.load(sin_ptr + angle + half, mask=inside, other=0.0).to(tl.float32)
    # Each product is written before the sum is taken.
    first = (a * cos_a).to(dtype).to(tl.float32) + (-b * sin_a).to(dtype).to(tl.float32)
    second = (b * cos_b).to(dtype).to(tl.float32) + (a * sin_b).to(dtype).to(tl.float32)
    tl.store(out_ptr + low, first.to(dtype), mask=inside)
    tl.store(out_ptr + low + half, second.to(dtype), mask=inside)


guards = (
    "cos, sin, query, key: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "query: shape (batch, heads, length, dim)",
    "key: shape (batch, groups, length, dim)",
    "cos, sin: shape (batch, length, dim) or (1, length, dim)",
)


def guard(query, half):
    return half * 2 == query.shape[-1]


def pattern(cos, sin, query, key, half: int):
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    scaled = query * cos
    low, high = query[..., :half], query[..., half:]
    rotated = torch.cat((-high, low), dim=-1) * sin
    query_out = scaled + rotated
    scaled = key * cos
    low, high = key[..., :half], key[..., half:]
    rotated = torch.cat((-high, low), dim=-1) * sin
    return query_out, scaled + rotated


def replacement_args(cos, sin, query, key, half):
    return cos, sin, query, key, half


def rotate(x, cos, sin, half):
    x = x.contiguous()
    out = torch.empty_like(x)
    _, heads, length, dim = x.shape
    num_rows = x.numel() // dim
    image_stride = 0 if cos.shape[0] == 1 else length * dim
    block = triton.next_power_of_2(half)
    row_block = max(1, 1024 // block)
    rotate_kernel[(triton.cdiv(num_rows, row_block),)](
        x, cos, sin, out, num_rows, heads, length, half, image_stride, row_block=row_block,
        block=block,
    )  # fmt: skip
    return out


def rotary(cos, sin, query, key, half):
    cos, sin = cos.contiguous(), sin.contiguous()
    return rotate(query, cos, sin, half), rotate(key, cos, sin, half)


def replacement_func():
    return rotary
