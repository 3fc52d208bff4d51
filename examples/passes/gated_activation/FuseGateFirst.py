"""silu(first half) * second half, as Phi-3 has it."""

import torch
from pass_dir.kernel import gated

guards = ("x: float32 or bfloat16, shape (..., n), not empty, contiguous, cpu", "n: multiple of 2")


def pattern(x):
    gate, value = x.chunk(2, dim=-1)
    return value * torch.nn.functional.silu(gate)


def replacement_args(x):
    return x, 1


def replacement_func():
    return gated
