"""Inception's reduction with two other branches."""

import torch
from pass_dir.kernel import pool, pool_concat


def pattern(x, a, b, kernel: int, stride: int):
    return torch.cat((a, b, pool(x, kernel, stride)), 1)


def replacement_args(x, a, b, kernel, stride):
    return x, kernel, stride, a, b


def replacement_func():
    return pool_concat
