"""relu(x + y): listed first, so that the pass for a bare sum leaves this one alone."""

import torch
from pass_dir.elementwise import add


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y, 1


def replacement_func():
    return add
