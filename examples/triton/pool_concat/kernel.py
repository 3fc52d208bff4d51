"""Max pooling written straight to its place in the concatenation, beside copies of the rest."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def pool_kernel(
    x_ptr, out_ptr, channels, height, width, out_channels, first, out_height, out_width,
    kernel: tl.constexpr, stride: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < out_height * out_width
    corner = (at // out_width * width + at % out_width) * stride
    best = tl.full((block,), -float("inf"), dtype=tl.float32)
    for y in tl.static_range(kernel):
        for x in tl.static_range(kernel):
            place = x_ptr + plane.to(tl.int64) * height * width + corner + y * width + x
            value = tl.load(place, mask=inside, other=0.0).to(tl.float32)
            best = tl.where((value > best) | (value != value), value, best)  # NaN wins
    target = plane // channels * out_channels + first + plane % channels
    target = out_ptr + target.to(tl.int64) * out_height * out_width + at
    tl.store(target, best.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, out_size, offset, block: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < size
    values = tl.load(x_ptr + image * size + at, mask=inside)
    tl.store(out_ptr + image * out_size + offset + at, values, mask=inside)


def pool_concat(x, kernel, stride, *others):
    """`others` come first in the result, the pooled image last; all along dimension 1."""
    x = x.contiguous()
    batch, channels, height, width = x.shape
    out_height, out_width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    area = out_height * out_width
    first = sum(item.shape[1] for item in others)
    out_channels = first + channels
    out = torch.empty((batch, out_channels, out_height, out_width), dtype=x.dtype, device=x.device)
    offset = 0
    for item in others:
        size = item.shape[1] * area
        copy_kernel[(batch, triton.cdiv(size, BLOCK))](
            item.contiguous(), out, size, out_channels * area, offset, block=BLOCK
        )
        offset += size
    block = min(triton.next_power_of_2(area), BLOCK)
    pool_kernel[(batch * channels, triton.cdiv(area, block))](
        x, out, channels, height, width, out_channels, first, out_height, out_width,
        kernel=kernel, stride=stride, block=block,
    )  # fmt: skip
    return out
