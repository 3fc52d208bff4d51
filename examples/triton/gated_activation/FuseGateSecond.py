"""first half * silu(second half), as gMixer has it."""

import torch
from pass_dir.kernel import gated


def pattern(x):
    value, gate = x.chunk(2, dim=-1)
    return value * torch.nn.functional.silu(gate)


def replacement_args(x):
    return x, False


def replacement_func():
    return gated
