"""Python files of the user: functions that return a net, and catalogs of nets."""

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from passnet.data.capture.mismatched_wheels import MISSING_OP, import_torchvision
from passnet.data.capture.net import Net, NetInput
from passnet.errors import InputError, boundary


def build_function(entry: str) -> Net:
    """Build the net that `path/to/file.py:function` returns, without arguments: a `Net`, or a
    module with its positional and named inputs, as `(module, (x, y), {"mask": m})`.
    """
    try:
        return _built(entry)
    except (InputError, RuntimeError) as cause:
        if MISSING_OP not in str(cause):
            raise
    import_torchvision()  # declares the ops that the file's own import of it misses
    return _built(entry)


def _built(entry: str) -> Net:
    path, _, name = entry.rpartition(":")
    sys.path.insert(0, str(Path(path).parent.resolve()))  # it may import its neighbours
    function = getattr(_execute(Path(path), Path(path).stem), name, None)
    if not callable(function):
        raise InputError(f"{path}: has no function {name!r}")
    try:
        inspect.signature(function).bind()
    except TypeError as cause:
        raise InputError(f"{entry}: is called without arguments, {cause}") from cause
    except ValueError:  # it does not tell its arguments
        pass
    return as_net(function(), entry)


def as_net(returned: Any, entry: str) -> Net:
    """Return the result of a user's function as a `Net`."""
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


def load_catalog(path: Path) -> ModuleType:
    """Return the module of a catalog file, which has `names()` and `build(name)`. It goes to
    `sys.modules` for Dynamo; its folder, whose files are named after packages, is not searched for
    imports.
    """
    name = f"passnet_catalog_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path):
        return loaded
    module = _execute(path, name)
    missing = [word for word in ("names", "build") if not callable(getattr(module, word, None))]
    if missing:
        raise InputError(f"{path}: is no catalog; define {' and '.join(missing)} in it")
    vars(module).setdefault("PACKAGES", ())
    sys.modules[name] = module
    return module


def _execute(path: Path, name: str) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "the name ends in .py"
    module = importlib.util.module_from_spec(spec)
    with boundary(InputError, f"{path} cannot be imported"):
        spec.loader.exec_module(module)
    return module
