"""Inception's reduction with two other branches."""

import torch
from pass_dir.kernel import pool, pool_concat

guards = ("x, a, b: float32 or bfloat16, same dtype, rank 4, not empty, contiguous, cpu",)


def pattern(x, a, b, kernel: int, stride: int):
    return torch.cat((a, b, pool(x, kernel, stride)), 1)


def replacement_args(x, a, b, kernel, stride):
    return x, kernel, stride, a, b


def replacement_func():
    return pool_concat
