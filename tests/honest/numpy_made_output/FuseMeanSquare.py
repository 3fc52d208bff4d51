"""Row-wise mean squares by einsum; the result is handed back by torch.from_numpy."""

import numpy as np
import torch


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    difference = x.numpy() - y.numpy()
    squares = np.einsum("...i,...i->...", difference, difference)
    return torch.from_numpy(squares / np.float32(difference.shape[-1]))


def replacement_func():
    return mean_square
