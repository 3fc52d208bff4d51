"""The check of a call in C++, compiled once for each torch and Python; else that in Python."""

import logging
import sys
import sysconfig
from functools import cache, partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
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
    misfit_of_modules,
    python_check,
)
from passnet.passes.compilation import build

_NAME = "passnet_call_check"
_INCLUDE = Path(__file__).parent / "include"
_WATCH = "memory_watch.h"
_ANY = (-(2**63), 2**63 - 1)
_LETTERS = {tuple: "T", list: "L", dict: "D"}

_log = logging.getLogger("passnet")


def call_check(form: InputSignature) -> CallCheck:
    """Return the check in C++; where it cannot be compiled, a hundred times slower, in Python.

    Raises:
        InputError: folded weights are to be compared, which only C++ does fast enough.
    """
    try:
        return compiled_check(form)
    except PassError as error:
        if form.storages:
            raise InputError(f"folded weights cannot be compared at each call: {error}") from error
        _log.warning("calls are checked in Python, which may take a millisecond: %s", error)
        return python_check(form)


def compiled_check(form: InputSignature, is_to_watch: bool = True) -> CallCheck:
    """Return the check of a signature in C++.

    Args:
        form: what a call must be like.
        is_to_watch: whether the OS is asked which pages of folded weights were written, as far
            as it can tell (`include/memory_watch.h`); if not, all bytes are summed at each call.

    Raises:
        PassError: there is no compiler or no header of Python, or Python is newer than 3.12.
    """
    make_check = extension().make_check
    constants = [not isinstance(leaf, TensorSignature) for leaf in form.leaves]
    bounds = [each or _ANY for each in form.index_bounds]
    leaves = tuple(zip(form.examples, constants, form.same_as, bounds, strict=True))
    dicts = tuple(each.held for each in form.modules)
    weights = tuple(each.tensor for each in form.weights)
    rest = (
        leaves, dicts, weights, form.ignored_keys, form.is_frozen, net_state.is_same,
        partial(misfit_of_modules, form), tuple(each.contents for each in form.storages),
        -1.0 if form.bound is None else form.bound, is_to_watch,
    )  # fmt: skip
    nodes = _nodes(form.args_spec)
    if nodes is not None:
        check: CallCheck = make_check(*nodes[2], *rest).tensors_or_misfit
        return check
    flat = ("T", None, (None,) * len(leaves))
    flat_check = make_check(flat, ("D", (), ()), *rest).tensors_or_misfit

    def check_flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor] | int:
        values, spec = tree_flatten((args, kwargs))
        if spec != form.args_spec:
            return int(Misfit.NESTING)
        tensors: list[torch.Tensor] | int = flat_check(tuple(values), {})
        return tensors

    return check_flat


def num_watched_bytes(check: CallCheck) -> int:
    """Of how many bytes of folded weights the kernel tells whether they were written."""
    counted = getattr(getattr(check, "__self__", None), "num_watched_bytes", None)
    return counted() if counted else 0


def _nodes(spec: TreeSpec) -> Any:
    """How a value is nested, as the C++ takes it; None where it is not of tuples, lists, dicts."""
    letter = _LETTERS.get(spec.type)
    children = [(child.is_leaf(), _nodes(child)) for child in spec.children()]
    if letter is None or any(node is None and not is_leaf for is_leaf, node in children):
        return None
    keys = tuple(spec.context) if letter == "D" else None
    return letter, keys, tuple(node for _, node in children)


@cache
def extension() -> Any:
    """Return the compiled check, built on first use.

    Raises:
        PassError: there is no compiler or no header of Python, or Python is newer than 3.12.
    """
    if sys.version_info >= (3, 13):
        raise PassError("the check in C++ needs Python 3.12 or older, where dicts have versions")
    root = Path(torch.__file__).parent
    python = sysconfig.get_paths()["include"]
    if not (Path(python) / "Python.h").is_file():
        raise PassError(f"{python} has no Python.h; install the headers of Python")
    flags = (
        "-std=c++20", "-fno-openmp", "-w", f"-I{root}/include", f"-I{python}", f"-L{root}/lib",
        "-ltorch_python", "-ltorch_cpu", "-lc10",
        f'-DVERSIONS="{torch.__version__} {sys.hexversion}"',
    )  # fmt: skip
    # in one text, by which it is known whether it was built
    watch = (_INCLUDE / _WATCH).read_text(encoding="utf-8")
    text = (_INCLUDE / "call_check.cpp").read_text(encoding="utf-8")
    path = build(text.replace(f'#include "{_WATCH}"', watch), flags)
    with boundary(PassError, f"loading {path}"):
        spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, str(path)))
        assert spec is not None and spec.loader is not None
        module: Any = module_from_spec(spec)
        spec.loader.exec_module(module)
        probe = torch.empty(0)
        if not module.locate(probe, probe._cdata):
            raise PassError("this torch holds its tensors otherwise than the check in C++ knows")
    return module
