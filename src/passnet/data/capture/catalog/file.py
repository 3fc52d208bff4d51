"""Nets of the user's own: a function in a Python file that returns a net and its inputs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from passnet.data.capture.net import Net, NetInput
from passnet.data.capture.torchvision_ops import MISSING_OP, import_torchvision
from passnet.errors import InputError, boundary


def build_function(entry: str) -> Net:
    """The net that `path/to/file.py:function` gives.

    The function takes nothing. It returns a `Net`, or a module with the positional inputs, or with
    positional and named ones: `(module, x)`, `(module, (x, y))`, `(module, (x,), {"mask": m})`.

    Raises:
        InputError: no such file or function, or it returns something else.
    """
    try:
        return _built(entry)
    except (InputError, RuntimeError) as cause:
        if MISSING_OP not in str(cause):
            raise
    import_torchvision()  # it does not fit this torch: once more, with its ops declared
    return _built(entry)


def _built(entry: str) -> Net:
    path, _, name = entry.rpartition(":")
    function = getattr(_load(Path(path)), name, None)
    if not callable(function):
        raise InputError(f"{path}: has no function {name!r}")
    return as_net(function(), entry)


def as_net(returned: Any, entry: str) -> Net:
    """What a function of the user's returned, as a `Net`.

    Raises:
        InputError: it is nothing that can be captured.
    """
    if isinstance(returned, Net):
        return returned
    is_net = isinstance(returned, tuple) and len(returned) in (2, 3) and callable(returned[0])
    if not is_net:
        raise InputError(
            f"{entry}: must return (net, inputs), (net, inputs, named inputs) or a "
            f"passnet.data.capture.net.Net, and returned {type(returned).__name__}"
        )
    module, inputs, named = (*returned, {})[:3]
    if not isinstance(named, dict):
        raise InputError(f"{entry}: named inputs are a dict, not {type(named).__name__}")
    if isinstance(module, torch.nn.Module):
        module.eval()
    args = map(NetInput, inputs if isinstance(inputs, (tuple, list)) else (inputs,))
    kwargs = {name: NetInput(value) for name, value in named.items()}
    return Net(module, tuple(args), kwargs, task="own")


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # it may import its neighbours
    with boundary(InputError, f"{path} cannot be imported"):
        spec.loader.exec_module(module)
    return module
