"""Limits of a run under fake tensors: its real parts (numbers, tuples) stay small."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.errors import GraphError

MAX_PARTS = 2**14
"""Most values of one op, nested ones included."""

MAX_CALLS = 2**14
"""Most torch ops inside one op of a graph; the public graphs need up to 1655."""

MAX_BITS = 128
MAX_TERMS = 256
_SPLITS = frozenset(["chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "combinations"])
"""Ops that make a list of a length given by a number, whatever the tensor."""

_PLAIN_METHODS = frozenset(["numel", "__len__", "__getitem__"])
"""Methods allowed on values that are no tensors (a size, a tuple)."""


def check_call(target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise a GraphError if an op on computed arguments would make something large for real."""
    name = target.rpartition(".")[2]
    if target.startswith("operator.") and len(args) == 2:
        _check_operator(name.removeprefix("i"), args[0], args[1])
    elif target.startswith("Tensor.") and not isinstance(args[0], torch.Tensor):
        if name not in _PLAIN_METHODS:
            raise GraphError("a method of a value that is no tensor")
    elif name in _SPLITS:
        for value in (*args, *kwargs.values()):
            if type(value) is int and value > MAX_PARTS:
                raise GraphError(f"{value} parts, more than {MAX_PARTS}")


def _check_operator(name: str, left: Any, right: Any) -> None:
    sequences = [operand for operand in (left, right) if isinstance(operand, (tuple, list, str))]
    if name == "mul" and sequences:
        count = right if sequences[0] is left else left
        if type(count) is not int or count * len(sequences[0]) > MAX_PARTS:
            raise GraphError(f"a sequence repeated to more than {MAX_PARTS}")
    if name == "mod" and isinstance(left, str):
        raise GraphError("text is not formatted")
    if name == "pow" and type(right) is int and _bits(left) * right > MAX_BITS:
        raise GraphError(f"a power of more than {MAX_BITS} bits")
    if name == "lshift" and type(right) is int and _bits(left) and _bits(left) + right > MAX_BITS:
        raise GraphError(f"a shift to more than {MAX_BITS} bits")


def _bits(value: Any) -> int:
    """Return an integer's length; 64 if unknown, 0 for any other value."""
    if isinstance(value, torch.SymInt):
        return 64
    return value.bit_length() if type(value) is int else 0


def check_result(value: Any) -> None:
    """Raise a GraphError if an op's result is too large to go on with."""
    parts = [value]
    for num_parts, part in enumerate(parts):  # grows while it is walked
        if num_parts >= MAX_PARTS:
            raise GraphError(f"more than {MAX_PARTS} values")
        if isinstance(part, torch.Tensor):
            for size in part.shape:
                _check_number(size)
        elif isinstance(part, (tuple, list)):
            if len(part) > MAX_PARTS:
                raise GraphError(f"more than {MAX_PARTS} values")
            parts.extend(part)
        elif isinstance(part, str) and len(part) > MAX_PARTS:
            raise GraphError(f"a text of more than {MAX_PARTS} characters")
        else:
            _check_number(part)


def _check_number(value: Any) -> None:
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise GraphError(f"a whole number of more than {MAX_BITS} bits")
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        terms: list[Any] = [value.node.expr]
        for num_terms, term in enumerate(terms):  # grows while it is walked
            if num_terms > MAX_TERMS:
                raise GraphError(f"a size with a formula of more than {MAX_TERMS} terms")
            terms.extend(term.args)


class SmallConstants(TorchDispatchMode):
    """A mode over a FakeTensorMode that sees every torch op of a run.

    Only ops with a one-element result may compute for real, as `item()` does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_calls = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Return the result of `func` under the mode below."""
        self.num_calls += 1
        if self.num_calls > MAX_CALLS:
            raise GraphError(f"more than {MAX_CALLS} ops of torch for one op")
        _check_parts(func, args, kwargs or {})
        with _constants_hidden(func, args, kwargs or {}):
            return func(*args, **(kwargs or {}))


def _check_parts(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    aten = torch.ops.aten
    if func not in (aten.unbind.int, aten.split.Tensor, aten.unsafe_split.Tensor):
        return
    tensor = args[0]
    position = 1 if func is aten.unbind.int else 2
    dim = kwargs.get("dim", args[position] if len(args) > position else 0)
    if not -tensor.dim() <= dim < tensor.dim():
        return  # torch says what is wrong with it
    length = 1 if position == 1 else args[1]
    size = tensor.shape[dim]
    if type(size) is int and type(length) is int and size > max(1, length) * MAX_PARTS:
        raise GraphError(f"more than {MAX_PARTS} parts")


@contextmanager
def _constants_hidden(func: Any, args: Any, kwargs: Any) -> Iterator[None]:
    """Hide the values of an op's tensors unless its result is as small as they are."""
    tensors = [] if _keeps_size(func) else [*_tensors_with_values((args, kwargs))]
    values = [tensor.constant for tensor in tensors]
    for tensor in tensors:
        tensor.constant = None
    try:
        yield
    finally:
        for tensor, value in zip(tensors, values, strict=True):
            tensor.constant = value


@cache
def _keeps_size(func: Any) -> bool:
    """Return whether an op keeps one-element size, makes no memory, or writes in place."""
    if not isinstance(func, torch._ops.OpOverload):
        return False
    aten = torch.ops.aten
    copies = (aten._to_copy, aten.clone, aten._local_scalar_dense, aten.lift_fresh)
    return (
        func.is_view
        or func._schema.is_mutable
        or torch.Tag.pointwise in func.tags
        or func.overloadpacket in copies
    )


def _tensors_with_values(value: Any) -> Iterator[FakeTensor]:
    if isinstance(value, FakeTensor):
        if value.constant is not None:
            yield value
    elif isinstance(value, (tuple, list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _tensors_with_values(inner)
