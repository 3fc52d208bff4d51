"""Swin's shifted windows: roll, pad by nothing, and partition, as one copy of any dtype."""

import torch
import triton
import triton.language as tl


@triton.jit
def roll_partition_kernel(
    x_ptr, out_ptr, num_pixels, height, width, channels, side, down, right,
    pixel_block: tl.constexpr, channel_block: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * pixel_block + tl.arange(0, pixel_block)  # of the output
    channel = tl.program_id(1) * channel_block + tl.arange(0, channel_block)
    inside = (pixel < num_pixels)[:, None] & (channel < channels)[None, :]
    window, within = pixel // (side * side), pixel % (side * side)
    columns = width // side
    tiles = (height // side) * columns
    image, tile = window // tiles, window % tiles
    y = (tile // columns * side + within // side - down + height) % height
    x = (tile % columns * side + within % side - right + width) % width
    source = ((image * height + y) * width + x).to(tl.int64) * channels
    target = pixel.to(tl.int64) * channels
    values = tl.load(x_ptr + source[:, None] + channel[None, :], mask=inside)
    tl.store(out_ptr + target[:, None] + channel[None, :], values, mask=inside)


guards = ("x: rank 4, contiguous, not empty",)


def guard(x, shifts, b, rows, side, columns, c, area):
    shape = b, rows * side, columns * side, c
    return tuple(x.shape) == shape and area == side * side and len(shifts) == 2


def pattern(x, shifts: tuple, b: int, rows: int, side: int, columns: int, c: int, area: int):
    rolled = torch.roll(x, shifts=shifts, dims=(1, 2))
    padded = torch.nn.functional.pad(rolled, (0, 0, 0, 0, 0, 0))
    tiles = padded.view(b, rows, side, columns, side, c).permute(0, 1, 3, 2, 4, 5).contiguous()
    return tiles.view(-1, side, side, c).view(-1, area, c)


def replacement_args(x, shifts, b, rows, side, columns, c, area):
    return x, shifts, side


def roll_partition(x, shifts, side):
    x = x.contiguous()
    batch, height, width, channels = x.shape
    num_pixels = batch * height * width
    out = torch.empty(
        (num_pixels // (side * side), side * side, channels), dtype=x.dtype, device=x.device
    )
    channel_block = min(triton.next_power_of_2(channels), 128)
    pixel_block = 1024 // channel_block
    grid = (triton.cdiv(num_pixels, pixel_block), triton.cdiv(channels, channel_block))
    down, right = shifts
    roll_partition_kernel[grid](
        x, out, num_pixels, height, width, channels, side, down % height, right % width,
        pixel_block=pixel_block, channel_block=channel_block,
    )  # fmt: skip
    return out


def replacement_func():
    return roll_partition
