"""numpy does the work: np.add and np.maximum with the output's memory as `out`."""

import numpy as np
import torch


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    out = torch.empty_like(x)
    view = out.numpy()
    np.add(x.numpy(), y.numpy(), out=view)
    np.maximum(view, 0, out=view)
    return out


def replacement_func():
    return add_relu
