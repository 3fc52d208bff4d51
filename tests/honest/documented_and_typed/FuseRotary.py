"""Rotary position embedding.

This module does not exec or eval anything, starts no threading, no subprocess, no socket, and
leaves time.perf_counter, sys.modules and torch.compile alone. It only says so.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import torch

from passnet.passes import cpp

Half: TypeAlias = int

# exec_time, eval_mode: plain numbers, whatever their names. os._exit(0) is only in this comment.
exec_time: float = 0.0
eval_mode: Final[bool] = True
compile_flags: Final[dict[str, str]] = {"import": "__import__", "globals": "gc.get_objects"}

SOURCE: Final[str] = r"""
#include <cstdint>
// std::thread, fork(), system("true") and exec() are words of this comment, too.
extern "C" void rotary(const float* x, const float* c, const float* s, float* out, int64_t rows,
                       int64_t length, int64_t half) {
  const int64_t dim = 2 * half;
  for (int64_t r = 0; r < rows; r++) {
    const float *low = x + r * dim, *high = low + half;
    const float *cr = c + (r % length) * dim, *sr = s + (r % length) * dim;
    float* o = out + r * dim;
    for (int64_t i = 0; i < half; i++) {
      o[i] = low[i] * cr[i] + -high[i] * sr[i];
      o[half + i] = high[i] * cr[half + i] + low[i] * sr[half + i];
    }
  }
}
"""
kernel: Final = cpp.kernel(SOURCE, "rotary", "ppppnnn")


def pattern(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, half: int) -> torch.Tensor:
    """Every half of the last axis times cos, plus the other half times sin.

    Args:
        x: queries or keys.
        cos: of the angles, one row a position.
        sin: likewise.
        half: half of the last axis.
    """
    low, high = x[..., :half], x[..., half:]
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def replacement_args(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, half: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """All of them, in order."""
    return x, cos, sin, half


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, half: Half) -> torch.Tensor:
    """The rotated tensor, new and contiguous.

    Shapes:
        x: [batch, heads, length, 2 * half]
        cos, sin: [length, 2 * half]
    """
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    rows = x.numel() // (2 * half)
    pointers = [item.data_ptr() for item in (x, cos, sin, out)]
    kernel(*pointers, rows, x.shape[-2], half)
    return out


def replacement_func():
    """`rotary`, every time."""
    return rotary
