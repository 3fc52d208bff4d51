"""One form for every way to write a call: positional, keyword and omitted default are equal.

Patterns and graphs go through the same function, so that `softmax(x, -1)` finds
`softmax(x, dim=-1)`, `relu(x)` finds `relu(x, inplace=False)`, `conv2d(…, stride=1)` finds
`conv2d(…, (1, 1))`, and `x.view(2, -1)` finds `x.view((2, -1))`. An in-place call takes the form of
the call without the writing, and says so: whether that is safe is for `legality` to decide.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.fx

from passnet.graph.effects import writes_first
from passnet.graph.from_fx import function_name
from passnet.graph.operators import IN_PLACE
from passnet.passes.signatures import (
    REQUIRED,
    Parameter,
    Signature,
    function_signatures,
    method_signatures,
)

LITERAL = "passnet_literal"
"""Key in the `meta` of a pattern's parameter that stands for a literal: the type it must have."""


@dataclass(frozen=True, slots=True)
class CanonicalCall:
    """A call in normal form.

    `key` says what is called (the callable itself, or "Tensor.<name>"), `arguments` pairs every
    parameter with its value (a node, a literal, or a tuple of them), in the order of the
    signature. `label` is the name to show. `writes` says that the original call wrote into its
    first argument.
    """

    key: Any
    label: str
    arguments: tuple[tuple[str, Any], ...]
    writes: bool


_OPERATORS_WITHOUT_WRITING: dict[Any, Any] = {
    getattr(operator, in_place): getattr(operator, plain)
    for in_place, plain in (
        (name, name[1:] + ("_" if name in ("iand", "ior") else "")) for name in IN_PLACE.values()
    )
}

_SYNONYMS = {"input": "self", "axis": "dim", "keepdims": "keepdim"}


def normalise(node: torch.fx.Node) -> CanonicalCall:
    """The normal form of a node that calls a function or a method."""
    if node.op == "call_method":
        name, writes = _method_without_writing(str(node.target))
        key: Any = "Tensor." + name
        label = key
        signatures = method_signatures(name)
    else:
        key, writes = _function_without_writing(node.target)  # type: ignore[arg-type]
        label = _label(key)
        signatures = () if label.startswith("operator.") else function_signatures(key)
    bound = _bind(signatures, node.args, node.kwargs)
    if bound is None:
        bound = _unbound(node)
    arguments = []
    for name, value in bound:
        if name == "inplace":
            writes = writes or value is True
            value = False
        if not name.startswith("_"):  # `_stacklevel` and its like change no value
            arguments.append((name, value))
    return CanonicalCall(key, label, tuple(arguments), writes or key is operator.setitem)


@cache
def _label(function: Callable[..., Any]) -> str:
    try:
        return function_name(function)
    except (RuntimeError, AttributeError):
        return repr(function)


@cache
def _method_without_writing(name: str) -> tuple[str, bool]:
    writes = writes_first("Tensor." + name, {})
    plain = name[:-1]
    if writes and not name.endswith("__") and hasattr(torch.Tensor, plain):
        return plain, True
    return name, writes


_INLINED = {torch.nn.functional.pad: torch._C._nn.pad}
"""Functions that Dynamo traces through -> what it records in their place."""


@cache
def _function_without_writing(function: Callable[..., Any]) -> tuple[Any, bool]:
    function = _INLINED.get(function, function)
    if function in _OPERATORS_WITHOUT_WRITING:
        return _OPERATORS_WITHOUT_WRITING[function], True
    name = getattr(function, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):
        for namespace in (torch, torch.nn.functional, torch._C._nn):
            plain = getattr(namespace, name[:-1], None)
            if getattr(namespace, name, None) is function and plain is not None:
                return plain, True
    return function, writes_first(_label(function), {})


def _unbound(node: torch.fx.Node) -> list[tuple[str, Any]]:
    """Arguments as they stand, for a call that no signature is known for."""
    items = [(str(index), _plain(value)) for index, value in enumerate(node.args)]
    return items + sorted((name, _plain(value)) for name, value in node.kwargs.items())


def _bind(
    signatures: tuple[Signature, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]] | None:
    """The arguments by parameter, under the first overload that takes them; None when none does."""
    for signature in signatures:
        bound = _bind_one(signature.parameters, args, kwargs)
        if bound is not None:
            return bound
    return None


def _bind_one(
    parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]] | None:
    positional = [item for item in parameters if not item.keyword_only]
    if len(args) > len(positional):
        gathered = _gather(positional, args)
        if gathered is None:
            return None
        args = gathered
    names = {item.name for item in parameters}
    given = {
        name if name in names else _SYNONYMS.get(name, name): item for name, item in kwargs.items()
    }
    bound: list[tuple[str, Any]] = []
    for index, parameter in enumerate(positional):
        if index < len(args):
            if parameter.name in given:
                return None
            given[parameter.name] = args[index]
    if not given.keys() <= names:
        return None
    for parameter in parameters:
        value = given.get(parameter.name, parameter.default)
        if value is REQUIRED:
            return None
        if parameter.name in given and not _fits(value, parameter):
            return None
        bound.append((parameter.name, _coerce(_plain(value), parameter)))
    return bound


def _gather(positional: list[Parameter], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Sizes that were spread over several arguments (`x.view(2, -1)`), as one."""
    for index, parameter in enumerate(positional):
        if parameter.kind == "ints" and index < len(args):
            spread = args[index:]
            if all(isinstance(item, (int, torch.fx.Node)) for item in spread):
                return (*args[:index], tuple(spread))
    return None


_LITERALS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "number": (int, float, complex, bool),
    "dtype": (torch.dtype,),
    "device": (torch.device, str),
    "format": (torch.memory_format, torch.layout),
    "ints": (int, tuple),
    "tensor": (),
    "tensors": (tuple,),
}


def _fits(value: Any, parameter: Parameter) -> bool:
    """Whether a value can stand for a parameter; a node can stand for any, unless it is known to
    stand for a literal itself.
    """
    if value is None or parameter.kind == "any":
        return True
    if isinstance(value, torch.fx.Node):
        kind = value.meta.get(LITERAL)
        return kind is None or issubclass(kind, _LITERALS[parameter.kind])
    if parameter.kind == "ints":
        if isinstance(value, (list, tuple)):
            return all(isinstance(item, (int, torch.fx.Node)) for item in value)
        return isinstance(value, int) and not isinstance(value, bool)
    if parameter.kind == "tensors":
        return isinstance(value, (list, tuple))
    if isinstance(value, bool) and parameter.kind in ("int", "float"):
        return False
    return isinstance(value, _LITERALS[parameter.kind])


def _coerce(value: Any, parameter: Parameter) -> Any:
    if parameter.kind == "float" and type(value) is int:
        return float(value)
    if parameter.kind == "ints" and (type(value) is int or _is_integer(value)):
        return (value,) * (parameter.repeat or 1)
    if parameter.kind == "device" and isinstance(value, str):
        return torch.device(value)
    if parameter.kind == "format" and type(value) is int:  # the one that a schema holds is 0
        return torch.contiguous_format
    if parameter.kind == "format" and value is torch.preserve_format:
        return None
    if (
        parameter.kind == "ints"
        and isinstance(value, tuple)
        and parameter.repeat
        and (len(value) == 1 and parameter.repeat > 1)
    ):
        return value * parameter.repeat
    return value


def _is_integer(value: Any) -> bool:
    """Whether a value is a parameter of a pattern that stands for an integer literal."""
    return isinstance(value, torch.fx.Node) and value.meta.get(LITERAL) is int


def _plain(value: Any) -> Any:
    """A list, tuple or size as a tuple, at every depth."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return value
