"""Parameter names, defaults and types of what a graph calls, from Python or torch's schemas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch._jit_internal

REQUIRED: Any = inspect.Parameter.empty
"""Stands for "no default"."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a signature.

    `kind` is what a literal must be to bind to it: "any", or the schema's type ("int", "float",
    "bool", "str", "number", "dtype", "device", "format", "ints", "tensor", "tensors"). `repeat` is
    the length to which a single integer is repeated (`stride=1` of a 2-d convolution), None when
    it is not.
    """

    name: str
    default: Any = REQUIRED
    kind: str = "any"
    repeat: int | None = None
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of one overload, in order."""

    parameters: tuple[Parameter, ...]


_KINDS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "number": "number",
    "Scalar": "number",
    "SymInt": "int",
    "ScalarType": "dtype",
    "Device": "device",
    "MemoryFormat": "format",
    "Layout": "format",
    "List[int]": "ints",
    "List[SymInt]": "ints",
    "Tensor": "tensor",
    "List[Tensor]": "tensors",
    "List[Optional[Tensor]]": "tensors",
}


@cache
def function_signatures(function: Callable[..., Any]) -> tuple[Signature, ...]:
    """The overloads of a function of torch; empty when nothing is known of it.

    A function written in Python has one; a built-in one has those of its schemas.
    """
    boolean = torch._jit_internal.boolean_dispatched.get(function)
    if boolean is not None:
        function = boolean["if_false"]
    if inspect.isfunction(function):
        return _python_signature(function)
    if isinstance(function, torch._ops.OpOverload):
        return (_schema_signature(function._schema),)
    return _schema_signatures(getattr(function, "__name__", ""))


@cache
def method_signatures(name: str) -> tuple[Signature, ...]:
    """The overloads of a tensor method; the receiver is the first parameter, `self`."""
    method = getattr(torch.Tensor, name, None)
    if inspect.isfunction(method):
        return _python_signature(method)
    signatures = _schema_signatures(name)
    if name == "to":  # or `x.to(device="cpu")` would be another overload than `x.to("cpu")`
        return tuple(sorted(signatures, key=lambda item: item.parameters[1].keyword_only))
    return signatures


def _python_signature(function: Callable[..., Any]) -> tuple[Signature, ...]:
    parameters = []
    for item in inspect.signature(function).parameters.values():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            return ()
        is_float = item.annotation in (float, "float")
        parameters.append(
            Parameter(
                item.name,
                item.default,
                "float" if is_float else "any",
                keyword_only=item.kind is item.KEYWORD_ONLY,
            )
        )
    return (Signature(tuple(parameters)),)


def _schema_signatures(name: str) -> tuple[Signature, ...]:
    try:
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    except RuntimeError:
        return ()
    return tuple(_schema_signature(item) for item in schemas)


def _schema_signature(schema: Any) -> Signature:
    parameters = []
    for item in schema.arguments:
        kind = str(getattr(item, "real_type", item.type))
        kind = kind.removeprefix("Optional[").removesuffix("]") if "Optional[" in kind else kind
        if kind.startswith("List[") and not kind.endswith("]"):
            kind += "]"
        default = item.default_value if item.has_default_value() else REQUIRED
        parameters.append(
            Parameter(item.name, default, _KINDS.get(kind, "any"), item.N, item.kwarg_only)
        )
    return Signature(tuple(parameters))
