"""Inception's reduction with one other branch."""

import torch
from pass_dir.kernel import pool, pool_concat

guards = ("x, a: float32 or bfloat16, same dtype, rank 4, not empty, contiguous, cpu",)


def pattern(x, a, kernel: int, stride: int):
    return torch.cat((a, pool(x, kernel, stride)), 1)


def replacement_args(x, a, kernel, stride):
    return x, kernel, stride, a


def replacement_func():
    return pool_concat
