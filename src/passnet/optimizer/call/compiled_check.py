"""The check of a call in C++, compiled once for each torch and Python; else in Python."""

import logging
import sys
import sysconfig
from collections import OrderedDict, deque
from collections.abc import Sequence
from functools import cache, partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten

from passnet.errors import InputError, PassError, boundary
from passnet.optimizer.call import net_state
from passnet.optimizer.call.call_check import (
    CallCheck,
    InputSignature,
    Misfit,
    TensorSignature,
    python_check,
)
from passnet.optimizer.call.held_objects import HeldPlaces
from passnet.passes.compilation import build, check_watch

_NAME = "passnet_call_check"
_INCLUDE = Path(__file__).parent / "include"
_PYTHON = Path(sysconfig.get_paths()["include"])
_ANY = (-(2**63), 2**63 - 1)
_ITERATED = (OrderedDict, deque)
_LETTERS = {tuple: "T", list: "L", dict: "D"}

_log = logging.getLogger("passnet")


def call_check(signature: InputSignature) -> CallCheck:
    """Return the check in C++, or one in Python, a hundred times slower, without a compiler.

    Python is too slow to compare folded weights: InputError.
    """
    try:
        return compiled_check(signature)
    except PassError as error:
        if signature.storages:
            raise InputError(f"folded weights cannot be compared at each call: {error}") from error
        _log.warning("calls are checked in Python, which may take a millisecond: %s", error)
        return python_check(signature)


def compiled_check(signature: InputSignature, is_to_watch: bool = True) -> CallCheck:
    """Return the check of an input signature in C++; PassError where it cannot be compiled.

    With `is_to_watch` the OS says which pages of folded weights were written, where it can
    (`memory_watch.h`); otherwise each call sums all bytes.
    """
    make_check = extension().make_check
    constants = [not isinstance(leaf, TensorSignature) for leaf in signature.leaves]
    bounds = [limits or _ANY for limits in signature.index_bounds]
    varies = [getattr(leaf, "varies", ()) for leaf in signature.leaves]
    of_leaves = signature.examples, constants, signature.same_as, bounds, varies
    leaves = tuple(zip(*of_leaves, signature.filled_rows, strict=True))
    modules = signature.modules
    unseen = tuple(former for former in modules if _is_unseen(former.entries))
    requirements = (
        leaves,
        tuple(former.entries for former in modules if isinstance(former.entries, dict)),
        tuple((f.entries, f.values) for f in modules if isinstance(f.entries, list)),
        tuple(found for former in modules if (found := _in_order(former))),
        tuple(former.entries for former in modules if isinstance(former.entries, set)),
        tuple(
            (former.entries.owner, name)
            for former in modules
            if isinstance(former.entries, HeldPlaces)
            for name in former.entries.names
        ),
        tuple(former.of for former in modules if former.kind == "class"),
        tuple(former.of for former in modules if former.of_class is not None),
        tuple(weight.tensor for weight in signature.weights),
        signature.ignored_keys,
        signature.is_frozen,
        net_state.is_same,
        partial(_look_at, signature.modules),
        partial(_look_at, unseen) if unseen else None,
        tuple(storage.contents for storage in signature.storages),
        -1.0 if signature.bound is None else signature.bound,
        is_to_watch,
        tuple((size_range.low, size_range.high) for size_range in signature.ranges),
    )
    nodes = _nodes(signature.args_spec)
    if nodes is not None:
        check: CallCheck = make_check(*nodes[2], *requirements).tensors_or_misfit
        return check
    flat = ("T", None, (None,) * len(leaves))
    flat_check = make_check(flat, ("D", (), ()), *requirements).tensors_or_misfit

    def check_flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor] | int:
        values, spec = tree_flatten((args, kwargs))
        if spec != signature.args_spec:
            return int(Misfit.NESTING)
        tensors: list[torch.Tensor] | int = flat_check(tuple(values), {})
        return tensors

    return check_flat


def _is_unseen(entries: Any) -> bool:
    """Return whether Python must look at a container, as nothing else tells its changes."""
    return not isinstance(entries, (dict, list, set, *_ITERATED, HeldPlaces, MappingProxyType))


def _in_order(former: net_state.RememberedDict) -> tuple[Any, type, tuple[Any, ...]] | None:
    """Return a container whose items are compared in their order, the class that iterates over
    them, and these; None for others.

    The version of an OrderedDict does not change with its order alone.
    """
    kind = next((kind for kind in _ITERATED if isinstance(former.entries, kind)), None)
    if kind is None or (kind is OrderedDict and len(former.entries) < 2):
        return None
    return former.entries, kind, (former.values if kind is deque else former.names)


def _look_at(remembered: Sequence[net_state.RememberedDict]) -> int:
    """Return a misfit of a net, zero for none, or -1 for none but to be looked at again."""
    change = net_state.change_of_net(remembered)
    return int(Misfit.NET) if change.says else -int(change.must_be_looked_at)


def num_watched_bytes(check: CallCheck) -> int:
    """Return the number of bytes of folded weights that the OS watches."""
    count_bytes = getattr(getattr(check, "__self__", None), "num_watched_bytes", None)
    return count_bytes() if count_bytes else 0


def _nodes(spec: TreeSpec) -> Any:
    """Return the nesting for the C++ check; None unless of tuples, lists and dicts."""
    letter = _LETTERS.get(spec.type)
    children = [(child.is_leaf(), _nodes(child)) for child in spec.children()]
    if letter is None or any(node is None and not is_leaf for is_leaf, node in children):
        return None
    keys = tuple(spec.context) if letter == "D" else None
    return letter, keys, tuple(node for _, node in children)


@cache
def extension(python: Path = _PYTHON) -> Any:
    """Return the compiled check, built on first use; PassError where that fails.

    `python` is the folder of Python's headers.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise PassError("the check in C++ needs a Python with a global interpreter lock")
    root = Path(torch.__file__).parent
    if not (python / "Python.h").is_file():
        raise PassError(f"{python} has no Python.h; install the headers of Python")
    flags = (
        *("-std=c++20", "-fno-openmp", "-w", f"-I{root}/include", f"-I{python}", f"-L{root}/lib"),
        *("-ltorch_python", "-ltorch_cpu", "-lc10"),
        f'-DVERSIONS="{torch.__version__} {sys.hexversion}"',
    )
    path = build((_INCLUDE / "call_check.cpp").read_text(encoding="utf-8"), flags)
    check_watch(path)
    with boundary(PassError, f"loading {path}"):
        spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, str(path)))
        assert spec is not None and spec.loader is not None
        module: Any = module_from_spec(spec)
        spec.loader.exec_module(module)
        probe = torch.empty(0)
        if not module.locate(probe, probe._cdata):
            raise PassError("this torch holds its tensors otherwise than the check in C++ knows")
    return module
