"""Swin's windows back to an image, rolled back, and added to the shortcut: one pass."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

// windows [batch * rows * columns, side * side, c], shortcut and out [batch, height, width, c].
template <typename T>
static void reverse_add(const T* windows, const T* shortcut, T* out, int64_t batch, int64_t height,
                        int64_t width, int64_t c, int64_t side, int64_t down, int64_t right) {
  int64_t rows = height / side, columns = width / side;
#pragma omp parallel for collapse(2)
  for (int64_t b = 0; b < batch; b++)
    for (int64_t y = 0; y < height; y++) {
      int64_t sy = (y - down + height) % height;
      for (int64_t x = 0; x < width; x++) {
        int64_t sx = (x - right + width) % width;
        int64_t window = (b * rows + sy / side) * columns + sx / side;
        const T* from = windows + ((window * side + sy % side) * side + sx % side) * c;
        const T* add = shortcut + ((b * height + y) * width + x) * c;
        T* to = out + ((b * height + y) * width + x) * c;
#pragma omp simd
        for (int64_t i = 0; i < c; i++) store(to + i, load(add + i) + load(from + i));
      }
    }
}

#define EXPORT(T, NAME)                                                                         \
  extern "C" void NAME(const T* windows, const T* shortcut, T* out, int64_t batch,              \
                       int64_t height, int64_t width, int64_t c, int64_t side, int64_t down,    \
                       int64_t right) {                                                         \
    reverse_add<T>(windows, shortcut, out, batch, height, width, c, side, down, right);         \
  }
EXPORT(float, reverse_add_float32)
EXPORT(bf16, reverse_add_bfloat16)
"""
REVERSE_ADD = cpp.kernels(SOURCE, "reverse_add")


guards = (
    "windows, shortcut: float32 or bfloat16, same dtype, contiguous, not empty, cpu",
    "windows: shape (count, area, c)",
    "shortcut: shape (b, h, w, c)",
)


def guard(windows, shortcut, shifts, side, rows, columns, h, w):
    fits = h == rows * side and w == columns * side and windows.numel() == shortcut.numel()
    return fits and len(shifts) == 2


def pattern(
    windows, shortcut, shifts: tuple, side: int, rows: int, columns: int, h: int, w: int, c: int
):
    tiles = windows.view(-1, side, side, c).view(-1, rows, columns, side, side, c)
    image = tiles.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, h, w, c)
    image = image[:, :h, :w, :].contiguous()
    return shortcut + torch.roll(image, shifts=shifts, dims=(1, 2))


def replacement_args(windows, shortcut, shifts, side, rows, columns, h, w, c):
    return windows, shortcut, shifts, side


def reverse_roll_add(windows, shortcut, shifts, side):
    windows, shortcut = windows.contiguous(), shortcut.contiguous()
    out = torch.empty_like(shortcut)
    batch, height, width, channels = shortcut.shape
    down, right = shifts
    REVERSE_ADD[out.dtype](
        windows, shortcut, out, batch, height, width, channels,
        side, down % height, right % width,
    )  # fmt: skip
    return out


def replacement_func():
    return reverse_roll_add
