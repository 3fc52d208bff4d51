"""A layer norm as two steps of torch ops: centre, then scale by the length of what is left."""

import torch

from .plan import Plan, centre, normalise

RUN = Plan(centre, normalise).exec_plan


def pattern(x, weight, bias, shape: tuple, eps: float):
    return torch.nn.functional.layer_norm(x, shape, weight, bias, eps)


def replacement_args(x, weight, bias, shape, eps):
    return x, weight, bias, eps


def replacement_func():
    return RUN
