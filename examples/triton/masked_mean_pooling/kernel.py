"""The kernel of all passes of this folder: the mean over the tokens that a mask keeps."""

import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(
    hidden_ptr, mask_ptr, out_ptr, length, width, least, kind: tl.constexpr,
    token_block: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    dtype = out_ptr.dtype.element_ty
    total = tl.zeros((block,), dtype=tl.float32)
    count = tl.zeros((token_block,), dtype=tl.float32)
    for start in range(0, length, token_block):
        token = start + tl.arange(0, token_block)
        there = token < length
        inside = there[:, None] & (column < width)[None, :]
        mask = tl.load(mask_ptr + image * length + token, mask=there, other=0)
        mask = mask.to(tl.float32).to(kind).to(tl.float32)
        at = (image * length + token)[:, None] * width + column[None, :]
        hidden = tl.load(hidden_ptr + at, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum((hidden * mask[:, None]).to(dtype).to(tl.float32), axis=0)
        count += mask
    kept = tl.sum(count).to(kind).to(tl.float32)
    floor = tl.full((), least, dtype=tl.float32).to(kind).to(tl.float32)
    mean = total.to(dtype).to(tl.float32) / tl.where(kept < floor, floor, kept)
    tl.store(out_ptr + image * width + column, mean.to(dtype), mask=column < width)


KINDS = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


def masked_mean(hidden, mask, least, dtype):
    """Mean of hidden [batch, length, width] over the length, weighted by mask [batch, length].

    `dtype` is that of the mask once it is a number; `least` the smallest divisor.
    """
    hidden, mask = hidden.contiguous(), mask.contiguous()
    batch, length, width = hidden.shape
    kind = torch.promote_types(hidden.dtype, dtype)
    out = torch.empty((batch, width), dtype=kind, device=hidden.device)
    block = min(triton.next_power_of_2(width), 128)
    mean_kernel[(batch, triton.cdiv(width, block))](
        hidden, mask, out, length, width, least, kind=KINDS[dtype],
        token_block=min(triton.next_power_of_2(length), 32), block=block,
    )  # fmt: skip
    return out
