"""Scale, mask, softmax in float32, and the cast back: five ops, each row read and written once."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(
    scores_ptr, mask_ptr, out_ptr, num_rows, heads, length, n, mask_image, mask_head, mask_row,
    mask_column, scale, row_block: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * row_block + tl.arange(0, row_block)
    column = tl.arange(0, block)
    inside = (row < num_rows)[:, None] & (column < n)[None, :]
    at = row.to(tl.int64)[:, None] * n + column[None, :]
    image, head, line = row // (heads * length), row // length % heads, row % length
    mask_at = image.to(tl.int64) * mask_image + head * mask_head + line * mask_row
    mask_at = mask_at[:, None] + column[None, :] * mask_column
    dtype = scores_ptr.dtype.element_ty
    x = tl.load(scores_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(mask_ptr + mask_at, mask=inside, other=0.0).to(tl.float32)
    masked = ((x * scale).to(dtype).to(tl.float32) + y).to(dtype).to(tl.float32)
    masked = tl.where(column[None, :] < n, masked, -float("inf"))
    weight = tl.exp(masked - tl.max(masked, axis=1)[:, None])
    weight = weight / tl.sum(weight, axis=1)[:, None]
    tl.store(out_ptr + at, weight.to(out_ptr.dtype.element_ty), mask=inside)


guards = (
    "scores, mask: float32 or bfloat16 or float16, same dtype, contiguous",
    "scores: shape (b, heads, n, m), not empty",
    "mask: rank 4",
)


def guard(scores, mask, dtype):
    fits = all(size in (1, whole) for size, whole in zip(mask.shape, scores.shape, strict=True))
    return fits and dtype == scores.dtype


def pattern(scores, mask, scale: float, dtype: torch.dtype):
    masked = scores * scale + mask
    weights = torch.nn.functional.softmax(masked, dim=-1, dtype=torch.float32).to(dtype)
    return torch.nn.functional.dropout(weights, p=0.0, training=False)


def replacement_args(scores, mask, scale, dtype):
    return scores, mask, scale, dtype


def masked_softmax(scores, mask, scale, dtype):
    scores, mask = scores.contiguous(), mask.expand(scores.shape)  # the mask is not copied
    out = torch.empty_like(scores, dtype=dtype)
    _, heads, length, n = scores.shape
    num_rows = scores.numel() // n
    block = triton.next_power_of_2(n)
    row_block = max(1, 1024 // block)
    masked_softmax_kernel[(triton.cdiv(num_rows, row_block),)](
        scores, mask, out, num_rows, heads, length, n, *mask.stride(), scale,
        row_block=row_block, block=block, num_warps=8 if block > 2048 else 4,
    )  # fmt: skip
    return out


def replacement_func():
    return masked_softmax
