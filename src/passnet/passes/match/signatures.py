"""Names, defaults and types of a call's parameters, from Python or torch's schemas."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, TypeAlias

import torch
import torch._jit_internal

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a signature.

    `kind` limits the literals that bind to it: "int", "float", "bool", "str", "number", "dtype",
    "device", "format", "ints", "tensor" or "tensors"; any other kind takes all. `repeat` is the
    length to which a single integer is repeated (`stride=1` of a 2-d convolution).
    """

    name: str
    default: Any = REQUIRED
    kind: str = "any"
    repeat: int | None = None
    keyword_only: bool = False


Signature: TypeAlias = tuple[Parameter, ...]


_KINDS = {
    "Scalar": "number", "SymInt": "int", "ScalarType": "dtype", "Device": "device",
    "MemoryFormat": "format", "Layout": "format", "List[int]": "ints", "List[SymInt]": "ints",
    "Tensor": "tensor", "List[Tensor]": "tensors", "List[Optional[Tensor]]": "tensors",
}  # fmt: skip


@cache
def function_signatures(function: Callable[..., Any]) -> tuple[Signature, ...]:
    """Return the overloads of a function, from Python or torch's schemas; empty if unknown."""
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
    """Return the overloads of a tensor method; its receiver is the first parameter, `self`."""
    method = getattr(torch.Tensor, name, None)
    if inspect.isfunction(method):
        return _python_signature(method)
    signatures = _schema_signatures(name)
    if name == "to":  # or `x.to(device="cpu")` would be another overload than `x.to("cpu")`
        return tuple(sorted(signatures, key=lambda signature: signature[1].keyword_only))
    return signatures


def _python_signature(function: Callable[..., Any]) -> tuple[Signature, ...]:
    # A pass may have set a `__signature__` of its own, which changes no call.
    own: Any = inspect.unwrap(function)
    if not inspect.isfunction(own):
        return ()
    bare = FunctionType(own.__code__, {}, argdefs=own.__defaults__, closure=own.__closure__)
    bare.__kwdefaults__, bare.__annotations__ = own.__kwdefaults__, own.__annotations__
    signature = inspect.signature(bare)
    parameters = []
    for param in signature.parameters.values():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            return ()
        kind = "float" if param.annotation in (float, "float") else "any"
        keyword_only = param.kind is param.KEYWORD_ONLY
        parameters.append(Parameter(param.name, param.default, kind, keyword_only=keyword_only))
    return (tuple(parameters),)


def _schema_signatures(name: str) -> tuple[Signature, ...]:
    try:
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    except RuntimeError:
        return ()
    return tuple(_schema_signature(schema) for schema in schemas)


def _schema_signature(schema: Any) -> Signature:
    parameters = []
    for argument in schema.arguments:
        kind = str(getattr(argument, "real_type", argument.type))
        kind = kind.removeprefix("Optional[").removesuffix("]") if "Optional[" in kind else kind
        if kind.startswith("List[") and not kind.endswith("]"):
            kind += "]"
        default = argument.default_value if argument.has_default_value() else REQUIRED
        kind = _KINDS.get(kind, kind)
        parameters.append(Parameter(argument.name, default, kind, argument.N, argument.kwarg_only))
    return tuple(parameters)
