"""Scale, mask and softmax; how a row is walked through is a checked setting."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from passnet.passes import cpp


class Walk(enum.Enum):
    """The number of readings of a row."""

    TWICE = "softmax_two"
    THRICE = "softmax_three"


SOURCE = r"""
#include "passnet_kernel.h"
static float value(const float* x, const float* m, int64_t i, float s) { return x[i] * s + m[i]; }
static const float* mask_row(const float* mask, int64_t r, int64_t heads, int64_t n, int64_t m) {
  return mask + ((r / (heads * n)) * n + r % n) * m;
}
extern "C" void softmax_two(const float* x, const float* mask, float* out, int64_t rows,
                            int64_t heads, int64_t n, int64_t m, float s) {
  for (int64_t r = 0; r < rows; r++, x += m, out += m) {
    const float* y = mask_row(mask, r, heads, n, m);
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < m; i++) {
      out[i] = value(x, y, i, s);
      top = out[i] > top ? out[i] : top;
    }
    for (int64_t i = 0; i < m; i++) total += out[i] = passnet::exp(out[i] - top);
    float factor = 1 / total;
    for (int64_t i = 0; i < m; i++) out[i] *= factor;
  }
}
extern "C" void softmax_three(const float* x, const float* mask, float* out, int64_t rows,
                              int64_t heads, int64_t n, int64_t m, float s) {
  for (int64_t r = 0; r < rows; r++, x += m, out += m) {
    const float* y = mask_row(mask, r, heads, n, m);
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < m; i++) top = value(x, y, i, s) > top ? value(x, y, i, s) : top;
    for (int64_t i = 0; i < m; i++) total += passnet::exp(value(x, y, i, s) - top);
    for (int64_t i = 0; i < m; i++) out[i] = passnet::exp(value(x, y, i, s) - top) / total;
  }
}
"""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the kernel.

    Args:
        walk: how often a row is read.
        kernel: made from it.
    """

    walk: Walk = Walk.TWICE
    kernel: Callable[..., None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.walk, Walk):
            raise TypeError(f"walk is {self.walk!r}, not one of {list(Walk)}")
        object.__setattr__(self, "kernel", cpp.kernel(SOURCE, self.walk.value, "pppnnnnf"))


CONFIG = Config(Walk.TWICE)


def pattern(scores, mask, scale: float):
    return torch.nn.functional.softmax(scores * scale + mask, dim=-1)


def replacement_args(scores, mask, scale):
    return scores, mask, scale


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """The softmax over the last axis of `scores * scale + mask`."""
    scores, mask = scores.contiguous(), mask.contiguous()
    out = torch.empty_like(scores)
    batch, heads, n, m = scores.shape
    assert CONFIG.kernel is not None and mask.shape == (batch, 1, n, m)
    pointers = (scores.data_ptr(), mask.data_ptr(), out.data_ptr())
    CONFIG.kernel(*pointers, batch * heads * n, heads, n, m, scale)
    return out


def replacement_func() -> Callable[..., torch.Tensor]:
    """The same function every time."""
    return masked_softmax
