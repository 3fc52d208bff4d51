"""Activations that a C++ kernel computes of its results before it stores them.

A kernel that stores `PASSNET_EPILOGUE(value)` (`passnet_kernel.h`) takes in the activation that a
graph computes of its pass's result: the same source is compiled once more with that function in the
place of the macro, as an op of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from passnet.passes.compilation import build
from passnet.passes.kernel_op import add_maker, kernel_code, kernel_op, name_of

MARK = "PASSNET_EPILOGUE("

FUNCTIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}
"""What torch computes, by the name of the function in `passnet_kernel.h`."""

FUNCTION_OF = {
    ("relu", "none"): "relu",
    ("swish", "none"): "silu",
    ("sigmoid", "none"): "sigmoid",
    ("tanh", "none"): "tanh",
    ("gelu", "none"): "gelu",
    ("gelu", "tanh"): "gelu_tanh",
}
"""The function of an activation, by its name and algorithm (`match/activations.py`)."""

_sources: dict[str, tuple[str, str]] = {}
"""Text and function of each kernel with an epilogue, by its op's name: state of the process."""


@dataclass
class _Asked:
    """An activation that the op of one kernel shall compute."""

    op: torch._ops.OpOverload
    function: str
    is_computed: bool = False


_asked: ContextVar[_Asked | None] = ContextVar("_asked", default=None)


def note_source(name: str, text: str, function: str) -> None:
    """Note the text of a kernel by its op's name, if it has an epilogue."""
    if MARK in text:
        _sources[name] = (text, function)
        add_maker(_make_all)


def takes_epilogue(op: torch._ops.OpOverload) -> bool:
    """Return whether a kernel computes what follows it."""
    return name_of(op) in _sources


def _op_with(name: str, function: str) -> torch._ops.OpOverload:
    """Return the op of a kernel that computes a function of its results, compiled once."""
    text, kernel = _sources[name]
    flag = f"-DPASSNET_EPILOGUE(value)=passnet::{function}(value)"
    return kernel_op(kernel_code(build(text, (flag,)), kernel))


def _make_all() -> None:
    """Make the ops of all kernels with all functions, of which a cached graph calls some."""
    for name in _sources:
        for function in FUNCTIONS:
            _op_with(name, function)


def traced_op(op: torch._ops.OpOverload) -> torch._ops.OpOverload:
    """Return the op to call for a kernel's, with the activation that is asked for now."""
    asked = _asked.get()
    if asked is None or asked.op is not op:
        return op
    asked.is_computed = True
    return _op_with(name_of(op), asked.function)


@contextmanager
def _asking(op: torch._ops.OpOverload, function: str) -> Iterator[_Asked]:
    token = _asked.set(asked := _Asked(op, function))
    try:
        yield asked
    finally:
        _asked.reset(token)


def with_epilogue(
    replacement: Callable[..., Any], op: torch._ops.OpOverload, function: str
) -> Callable[..., Any]:
    """Return a replacement and a function of its result, which the kernel computes where the call
    is traced.
    """

    def finished(*args: Any, **kwargs: Any) -> Any:
        with _asking(op, function) as asked:
            result = replacement(*args, **kwargs)
        return result if asked.is_computed else FUNCTIONS[function](result)

    finished.__name__ = f"{getattr(replacement, '__name__', 'replacement')}_{function}"
    return finished
