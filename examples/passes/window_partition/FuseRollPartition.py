"""Swin's shifted windows: roll, pad by nothing, and partition, as one copy."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstring>
#include "passnet_kernel.h"

// x [batch, height, width, channels] in bytes per pixel; out [windows, side * side, channels].
// Rows of a window are contiguous in x except where the roll wraps around.
extern "C" void roll_partition(const char* x, char* out, int64_t batch, int64_t height,
                               int64_t width, int64_t pixel, int64_t side, int64_t down,
                               int64_t right) {
  int64_t rows = height / side, columns = width / side;
#pragma omp parallel for collapse(2)
  for (int64_t b = 0; b < batch; b++)
    for (int64_t wr = 0; wr < rows; wr++)
      for (int64_t wc = 0; wc < columns; wc++)
        for (int64_t i = 0; i < side; i++) {
          int64_t y = (wr * side + i - down + 2 * height) % height;
          int64_t x0 = (wc * side - right + 2 * width) % width;
          int64_t until_wrap = width - x0 < side ? width - x0 : side;
          const char* line = x + (b * height + y) * width * pixel;
          char* to = out + ((((b * rows + wr) * columns + wc) * side + i) * side) * pixel;
          std::memcpy(to, line + x0 * pixel, until_wrap * pixel);
          std::memcpy(to + until_wrap * pixel, line, (side - until_wrap) * pixel);
        }
}
"""
ROLL_PARTITION = cpp.kernel(SOURCE, "roll_partition")


guards = ("x: rank 4, contiguous, not empty, cpu",)


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
    windows = batch * (height // side) * (width // side)
    out = torch.empty((windows, side * side, channels), dtype=x.dtype)
    down, right = shifts
    ROLL_PARTITION(
        x, out, batch, height, width, channels * x.element_size(), side,
        down % height, right % width,
    )  # fmt: skip
    return out


def replacement_func():
    return roll_partition
