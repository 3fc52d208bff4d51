"""Puts its folder on Python's path to import its siblings; a function builds its pattern."""

import os
import sys
import threading

import torch
import torch.nn.functional as F  # noqa: F401
from torch import inf

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from add_relu_kernel import ADD_RELU  # noqa: E402

KEPT = threading.local()
LIMIT = inf


def _activation(x):
    return torch.relu(x)


def pattern():
    graph = torch.fx.symbolic_trace(lambda x, y: _activation(x + y)).graph
    return torch.fx.GraphModule(torch.nn.Module(), graph)


pattern = pattern()


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    KEPT.num_calls = getattr(KEPT, "num_calls", 0) + 1
    x, y = torch.reshape(x, x.shape).contiguous(), y.contiguous()
    out = torch.empty_like(x)
    ADD_RELU(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out if out.numel() < LIMIT else None


def replacement_func():
    return add_relu
