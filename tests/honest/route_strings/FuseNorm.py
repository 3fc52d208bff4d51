"""A layer norm, by way of the dispatcher."""

import torch
from pass_dir.dispatch import dispatch


def pattern(x, weight, bias, shape: tuple, eps: float):
    return torch.nn.functional.layer_norm(x, shape, weight, bias, eps)


def replacement_args(x, weight, bias, shape, eps):
    return x, weight, bias, eps, "norm"


def replacement_func():
    return dispatch
