"""One normal form for every spelling of a call: positional, keyword and omitted default are equal.

`softmax(x, -1)` is `softmax(x, dim=-1)`, `relu(x)` is `relu(x, inplace=False)`, and `x.view(2, -1)`
is `x.view((2, -1))`. An in-place call has the form of the plain call, and says so: `legality`
decides whether that is safe.
"""

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.graph.fx.from_fx import function_name
from passnet.graph.fx.operators import ARITY, BINARY, IN_PLACE
from passnet.graph.values.effects import writes_first
from passnet.passes.match.signatures import (
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

    `key` is the callable or "Tensor.<name>", `label` its name to show. `arguments` pairs
    parameters, in the order of the signature, with nodes, literals or tuples of them. `writes`: the
    original call wrote into its first argument. `explicit` has the arguments as written, without
    omitted defaults.
    """

    key: Any
    label: str
    arguments: tuple[tuple[str, Any], ...]
    writes: bool
    explicit: Mapping[str, Any]


_OPERATORS_WITHOUT_WRITING: dict[Any, Any] = {
    getattr(operator, IN_PLACE[kind]): getattr(operator, name) for kind, name in BINARY.items()
}

_OPERATORS_OF_METHODS: dict[str, Any] = {
    f"__{name.strip('_')}__": getattr(operator, name) for name in ARITY
}
"""Methods behind operators -> the operator: `x.__eq__(y)` is `x == y`."""

_METHODS_OF_FUNCTIONS: dict[Any, str] = {
    torch.nn.functional.sigmoid: "sigmoid",
    torch.nn.functional.tanh: "tanh",
}
"""Functions that only call a method, and that method; a traced pattern holds the method."""

_DEFAULT = object()
_Bound: TypeAlias = tuple[str, Any, Any]
"""A parameter, its value in normal form, and the value as it was written."""

_SYNONYMS = {"input": "self", "axis": "dim", "keepdims": "keepdim"}


def normalise(node: torch.fx.Node) -> CanonicalCall:
    """Return the normal form of a node that calls a function or a method."""
    return next(normal_forms(node))


def normal_forms(node: torch.fx.Node) -> Iterator[CanonicalCall]:
    """Yield a node's normal form by each overload that fits, the one torch would call first."""
    target, op = node.target, node.op
    if op == "call_function" and (method := _METHODS_OF_FUNCTIONS.get(target)) is not None:
        target, op = method, "call_method"
    if op == "call_method" and (function := _OPERATORS_OF_METHODS.get(str(target))) is not None:
        target, op = function, "call_function"
    if op == "call_method":
        name, writes = _method_without_writing(str(target))
        key: Any = "Tensor." + name
        label = key
        signatures = method_signatures(name)
    else:
        key, writes = _function_without_writing(target)  # type: ignore[arg-type]
        label = callable_name(key)
        signatures = () if label.startswith("operator.") else function_signatures(key)
    bindings = filter(None, (_bind(signature, node.args, node.kwargs) for signature in signatures))
    first = next(bindings, None) or _unbound(node)
    for bound in itertools.chain([first], bindings):
        form_writes = writes or key is operator.setitem
        arguments: list[tuple[str, Any]] = []
        explicit: dict[str, Any] = {}
        for name, value, spelling in bound:
            if name == "inplace":
                form_writes = form_writes or value is True
                value = False
            if not name.startswith("_"):  # `_stacklevel` and its like change no value
                arguments.append((name, value))
                if spelling is not _DEFAULT:
                    explicit[name] = spelling
        yield CanonicalCall(key, label, tuple(arguments), form_writes, explicit)


@cache
def callable_name(function: Callable[..., Any]) -> str:
    """Return the dotted name of a node's callable; its `repr` if no module of torch has it."""
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
"""Functions that Dynamo traces through, and the functions that it records."""


@cache
def _function_without_writing(function: Callable[..., Any]) -> tuple[Any, bool]:
    function = _INLINED.get(function, function)
    if isinstance(function, torch._ops.OpOverloadPacket) and len(function.overloads()) == 1:
        function = getattr(function, function.overloads()[0])
    if function in _OPERATORS_WITHOUT_WRITING:
        return _OPERATORS_WITHOUT_WRITING[function], True
    name = getattr(function, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):
        for namespace in (torch, torch.nn.functional, torch._C._nn):
            plain = getattr(namespace, name[:-1], None)
            if getattr(namespace, name, None) is function and plain is not None:
                return plain, True
    return function, writes_first(callable_name(function), {})


def _unbound(node: torch.fx.Node) -> list[_Bound]:
    """Return the arguments as they stand, for a call without a known signature."""
    positional = [(str(index), _plain(value)) for index, value in enumerate(node.args)]
    is_index = node.target in (operator.getitem, operator.setitem)
    if is_index and len(node.args) > 1 and isinstance(node.args[1], list):
        positional[1] = ("rows", positional[1][1])  # as of `x[[0, 1]]`; `x[0, 1]` is a number
    named = [(name, _plain(value)) for name, value in sorted(node.kwargs.items())]
    return [(name, value, value) for name, value in positional + named]


def _bind(
    signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[_Bound] | None:
    """Return the arguments by parameter of an overload; None if it does not take them."""
    positional = [parameter for parameter in signature if not parameter.keyword_only]
    if len(args) > len(positional):
        gathered = _gather(positional, args)
        if gathered is None:
            return None
        args = gathered
    names = {parameter.name for parameter in signature}
    arguments = {
        name if name in names else _SYNONYMS.get(name, name): value
        for name, value in kwargs.items()
    }
    for parameter, value in zip(positional, args, strict=False):
        if parameter.name in arguments:
            return None
        arguments[parameter.name] = value
    if not arguments.keys() <= names:
        return None
    bound: list[_Bound] = []
    for parameter in signature:
        value = arguments.get(parameter.name, parameter.default)
        if value is REQUIRED or (parameter.name in arguments and not _fits(value, parameter)):
            return None
        spelling = _plain(arguments.get(parameter.name, _DEFAULT))
        bound.append((parameter.name, _coerce(_plain(value), parameter), spelling))
    return bound


def _gather(positional: list[Parameter], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return sizes spread over several arguments (`x.view(2, -1)`) as one."""
    for index, parameter in enumerate(positional):
        if parameter.kind == "ints" and index < len(args):
            sizes = args[index:]
            if all(isinstance(size, (int, torch.fx.Node)) for size in sizes):
                return (*args[:index], sizes)
    return None


_LITERALS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (int, float), "bool": (bool,), "str": (str,),
    "number": (int, float, complex, bool), "dtype": (torch.dtype,),
    "device": (torch.device, str), "format": (torch.memory_format, torch.layout),
    "ints": (int, tuple), "tensor": (), "tensors": (list, tuple),
}  # fmt: skip


def _fits(value: Any, parameter: Parameter) -> bool:
    """Return whether a value can stand for a parameter, as a node can but for other literals."""
    if value is None or parameter.kind not in _LITERALS:
        return True
    if isinstance(value, torch.fx.Node):
        kind = value.meta.get(LITERAL)
        return kind is None or issubclass(kind, _LITERALS[parameter.kind])
    if parameter.kind == "ints" and isinstance(value, (list, tuple)):
        return all(isinstance(size, (int, torch.fx.Node)) for size in value)
    if isinstance(value, bool) and parameter.kind in ("int", "float", "ints"):
        return False
    return isinstance(value, _LITERALS[parameter.kind])


def _coerce(value: Any, parameter: Parameter) -> Any:
    """Return a literal, or a node for an integer, as torch reads it for a parameter."""
    match parameter.kind:
        case "float" if type(value) is int:
            return float(value)
        case "ints":
            literal = value.meta.get(LITERAL) if isinstance(value, torch.fx.Node) else type(value)
            sizes = (value,) if literal is int else value
            is_repeated = isinstance(sizes, tuple) and len(sizes) == 1
            return sizes * (parameter.repeat or 1) if is_repeated else sizes
        case "device" if isinstance(value, str):
            return torch.device(value)
        case "format" if type(value) is int:  # the one that a schema holds is 0
            return torch.contiguous_format
        case "format" if value is torch.preserve_format:
            return None
    return value


def _plain(value: Any) -> Any:
    """Return a list, tuple or size as a tuple, at every depth."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(inner) for inner in value)
    return value
