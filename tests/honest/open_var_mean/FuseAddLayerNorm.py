"""Layer norm written out: variance and mean in one op, a reciprocal root instead of a division."""

import torch


def pattern(x, y, weight, bias, shape: tuple, eps: float):
    total = x + y
    return total, torch.nn.functional.layer_norm(total, shape, weight, bias, eps)


def replacement_args(x, y, weight, bias, shape, eps):
    return x, y, weight, bias, eps


def add_layer_norm(x, y, weight, bias, eps):
    total = torch.add(x, y)
    var, mean = torch.var_mean(total, dim=-1, correction=0, keepdim=True)
    centred = total - mean
    centred *= torch.rsqrt(var + eps)
    return total, torch.addcmul(bias, centred, weight)


def replacement_func():
    return add_layer_norm
