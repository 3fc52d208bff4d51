"""The chain is GELU's tanh form, for which torch has one kernel."""

import functools

import torch


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


gelu = functools.partial(torch.nn.functional.gelu, approximate="tanh")


def replacement_func():
    return gelu
