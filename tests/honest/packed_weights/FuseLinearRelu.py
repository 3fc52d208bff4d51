"""matmul, bias and relu on packed weights."""

import torch
from pass_dir.packing import LINEAR_RELU, Packed

KEPT = {}


def pattern(x, weight, bias):
    return torch.relu(torch.matmul(x, weight) + bias)


def replacement_args(x, weight, bias):
    return x, weight, bias


def linear_relu(x, weight, bias):
    x, weight = x.contiguous(), weight.contiguous()
    rows, depth = x.shape
    width = weight.shape[1]
    packed = KEPT.setdefault((depth, width), None) or Packed(depth, width)
    KEPT[depth, width] = packed
    out = torch.empty((rows, width), dtype=x.dtype)
    panels = packed.of(weight)
    pointers = (x.data_ptr(), panels.data_ptr(), bias.data_ptr(), out.data_ptr())
    LINEAR_RELU(*pointers, rows, depth, width)
    return out


def replacement_func():
    return linear_relu
