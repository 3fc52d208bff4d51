"""The formula as one would write it in numpy: the mean of a squared difference, checked by row."""

import torch


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    difference = x.numpy() - y.numpy()
    result = (difference**2).mean(axis=-1)
    assert result[0].min() >= 0
    return torch.as_tensor(result)


def replacement_func():
    return mean_square
