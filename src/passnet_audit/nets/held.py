"""The state of a net, its arguments and the process, as values that can be compared."""

import gc
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy
from torch.overrides import _get_current_function_mode_stack
from torch.utils._config_module import ConfigModule
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves

from passnet_audit.nets.differences import is_plain, packed_state, parts_of

OF_TORCH = ("_is_torch_compile", "_compiled_call_impl")
"""Attributes that torch itself sets in modules."""

PATCHED = (torch.nn.Module, torch.nn.functional, torch.Tensor, torch)
"""Namespaces of which the functions must stay the same."""


def held(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """Return the identity and the present contents of a value.

    Tensors are held by their bytes, memory, strides and count of updates; containers and objects
    by their parts; modules and functions by their identity.
    """
    if isinstance(value, torch.Tensor):
        return id(value), *_tensor(value)
    if isinstance(value, torch.ScriptObject):
        return id(value), _packed(packed_state(value))
    if isinstance(value, np.ndarray):
        return id(value), value.tobytes(), value.shape, value.strides
    if isinstance(value, (int, float, complex, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, (set, frozenset)):
        return id(value), sorted(map(repr, value))
    parts = None if id(value) in seen else parts_of(value)
    if parts is None:
        return id(value)
    seen = seen | {id(value)}
    return id(value), [(name, held(part, seen)) for name, part in parts.items()]


def _tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    if is_lazy(tensor):
        return ("uninitialised",)
    version = None if tensor.is_inference() else tensor._version
    grad = tensor.grad if tensor.is_leaf else None
    others = version, tensor.requires_grad, grad if grad is None else (id(grad), *_tensor(grad))
    place = tensor.data_ptr() if is_plain(tensor) else 0
    return _contents(tensor.detach()), place, *others


def _contents(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return the values of a tensor, and how they lie in memory."""
    if tensor.is_quantized:
        return repr(tensor), *_contents(tensor.int_repr())
    if not is_plain(tensor):
        return (repr(tensor),)
    flat = tensor.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    content = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return content, tuple(tensor.shape), tensor.stride(), tensor.dtype


def _packed(state: Any) -> list[Any]:
    """Return the contents of a state that torch makes anew each time it is asked for."""
    return [
        _contents(leaf.detach())
        if isinstance(leaf, torch.Tensor)
        else _packed(packed_state(leaf))
        if isinstance(leaf, torch.ScriptObject)
        else repr(leaf)
        for leaf in tree_leaves(state)
    ]


def state(net: Any, given: Any) -> dict[str, Any]:
    """Return what an optimisation must leave of a net and its arguments."""
    found: dict[str, Any] = {}
    for name, module in net.named_modules() if isinstance(net, torch.nn.Module) else ():
        where = name or "the net"
        own = {key: value for key, value in vars(module).items() if key not in OF_TORCH}
        found[f"attributes of {where}"] = sorted(own)
        for key, value in own.items():
            found[f"{key} of {where}"] = held(value)
        for kind in type(module).__mro__:
            found[f"methods of {kind.__qualname__}"] = _functions(kind)
        found[f"the class of {where}"] = type(module)
    for number, leaf in enumerate(tree_leaves(given)):
        found[f"argument {number}"] = held(leaf)
    return found


def _functions(namespace: Any) -> dict[str, int]:
    return {name: id(value) for name, value in vars(namespace).items() if callable(value)}


def process_state() -> dict[str, Any]:
    """Return the settings of torch and Python that an optimisation must leave."""
    return {**_of_torch(), **_of_python(), **_logs(), **_compiler_settings()}


def _of_torch() -> dict[str, Any]:
    legacy: Any = np.random.get_state()
    module, backends = torch.nn.modules.module, torch.backends
    tiny = torch.tensor(1e-40, device="cpu", dtype=torch.float32)
    return {
        "torch's random generator": torch.get_rng_state().numpy().tobytes(),
        "numpy's random generator": (legacy[1].tobytes(), *legacy[2:]),
        "Python's random generator": random.getstate(),
        "the number of threads": torch.get_num_threads(),
        "the number of inter-op threads": torch.get_num_interop_threads(),
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "gradients on": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "anomaly detection": torch.is_anomaly_enabled(),
        "modes of torch functions": list(map(id, _get_current_function_mode_stack())),
        "modes of torch's dispatch": list(map(id, _get_current_dispatch_mode_stack())),
        "deterministic algorithms": torch.get_deterministic_debug_mode(),
        "the precision of products": torch.get_float32_matmul_precision(),
        "oneDNN": backends.mkldnn.enabled,
        "the fast path of attention": backends.mha.get_fastpath_enabled(),
        "kernels of attention": (
            backends.cuda.flash_sdp_enabled(),
            backends.cuda.mem_efficient_sdp_enabled(),
            backends.cuda.math_sdp_enabled(),
        ),
        "denormals": float(tiny + tiny) != 0,
        "hooks of all modules": [
            held(getattr(module, name)) for name in dir(module) if name.startswith("_global_")
        ],
        **{f"functions of {each.__name__}": _functions(each) for each in PATCHED},
    }


def _of_python() -> dict[str, Any]:
    hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    limits = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_CORE", "RLIMIT_STACK", "RLIMIT_NOFILE")
    return {
        "environment variables": dict(os.environ),
        "the current folder": Path.cwd(),
        "signal handlers": {number: held(handler) for number, handler in handlers.items()},
        "exception hooks": list(map(id, hooks)),
        "trace functions": (id(sys.gettrace()), id(sys.getprofile())),
        "output streams": (id(sys.stdin), id(sys.stdout), id(sys.stderr)),
        "the path of imports": (list(sys.path), list(map(id, sys.meta_path))),
        "the recursion limit": sys.getrecursionlimit(),
        "garbage collection": (gc.isenabled(), gc.get_threshold()),
        "filters of warnings": (id(warnings.showwarning), list(map(repr, warnings.filters))),
        "processors": os.sched_getaffinity(0),
        "limits of the process": [resource.getrlimit(getattr(resource, name)) for name in limits],
        "how processes start": multiprocessing.get_start_method(allow_none=True),
        "numpy's errors": np.geterr(),
    }


def _logs() -> dict[str, Any]:
    """Return the state of every logger; those that come later are in no earlier state."""
    loggers: dict[str, Any] = {"": logging.getLogger(), **logging.root.manager.loggerDict}
    return {"logging switched off": logging.root.manager.disable} | {
        f"the logger {name or 'of all'}": (
            (log.level, log.disabled, log.propagate),
            [(id(handler), handler.level) for handler in log.handlers],
            list(map(id, log.filters)),
        )
        for name, log in loggers.items()
        if isinstance(log, logging.Logger)
    }


def _compiler_settings() -> dict[str, Any]:
    """Return the settings of torch's compilers, each by its name."""
    return {
        f"setting {module.__name__}.{name}": _in_words(value)
        for module in _config_modules()
        for name, value in module.get_config_copy().items()  # type: ignore[attr-defined]
    }


def _in_words(value: Any) -> str:
    """Return a setting as text; copies of a set may have another order."""
    is_set = isinstance(value, (set, frozenset))
    return str(sorted(map(repr, value))) if is_set else repr(value)


@cache
def _config_modules() -> list[ModuleType]:
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ConfigModule)]
    return sorted(modules, key=lambda module: module.__name__)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what differs from an earlier state."""
    return (name for name, value in before.items() if after.get(name) != value)
