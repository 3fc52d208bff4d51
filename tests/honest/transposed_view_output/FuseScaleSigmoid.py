"""The result is computed in the order of the input, and handed back transposed."""

import numpy as np
import torch


def pattern(x, factor):
    return torch.sigmoid(x.transpose(1, 2) * factor)


def replacement_args(x, factor):
    return x, factor


def scale_sigmoid(x, factor):
    result = torch.empty_like(x)
    view = result.numpy()
    np.multiply(x.numpy(), factor.numpy()[:, None], out=view)
    np.negative(view, out=view)
    np.exp(view, out=view)
    view += 1
    np.reciprocal(view, out=view)
    return result.permute(0, 2, 1)


def replacement_func():
    return scale_sigmoid
