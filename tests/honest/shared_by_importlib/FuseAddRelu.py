"""Shares one kernel among passes: the first that is loaded puts its module where others find it."""

import importlib.util
import sys
from pathlib import Path

import torch

SHARED = "_add_relu_shared"
if SHARED not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        SHARED, Path(__file__).resolve().parent / "shared_kernel.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[SHARED] = module
    spec.loader.exec_module(module)
ADD_RELU = sys.modules[SHARED].ADD_RELU


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y, "add_relu"


def dispatch(x, y, route):
    if route is torch.relu:
        raise ValueError(route)
    out = torch.empty_like(x)
    ADD_RELU(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out


def replacement_func():
    return dispatch
