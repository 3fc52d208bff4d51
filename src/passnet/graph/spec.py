"""The data model of a computation graph: a straight-line program and what its arguments hold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Ref:
    """A value bound to `name` by a parameter or an earlier statement."""

    name: str


@dataclass(frozen=True, slots=True)
class TorchName:
    """A constant of torch by its last name: a dtype ("float32"), layout or memory format."""

    name: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device literal, for example `device(type='cuda', index=0)`."""

    kind: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """A `slice(start, stop, step)` inside an index."""

    start: Arg = None
    stop: Arg = None
    step: Arg = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple, list or `torch.Size`; they print differently but mean the same to an op."""

    kind: Literal["tuple", "list", "size"]
    items: tuple[Arg, ...]


Arg: TypeAlias = (
    "Ref | TorchName | Device | Slice | Sequence | EllipsisType | None | bool | int | float | str"
)


@dataclass(frozen=True, slots=True)
class Op:
    """One call.

    `target` is "torch.…" for a function, "Tensor.<name>" for a method (the receiver is the first
    argument), "operator.<name>" for a Python operator, and "getattr" for an attribute. An in-place
    operator (`x += y`) is "operator.iadd" with `output` equal to the name of its first argument.
    `output` is None for a statement without a value (`x[i] = y` is "operator.setitem").
    """

    output: str | None
    target: str
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Alias:
    """`output = source`: a second name for the same value, no op."""

    output: str
    source: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Release:
    """`a = b = None`: a hint that the values are dead; it changes no result."""

    names: tuple[str, ...]
    line: int = field(default=0, compare=False)


Statement: TypeAlias = Op | Alias | Release


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of `forward`; `annotation` is its type as written, or None."""

    name: str
    annotation: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """The text of one `model.py` as data: parameters, statements, and the returned tuple."""

    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    outputs: tuple[Arg, ...]

    @property
    def ops(self) -> tuple[Op, ...]:
        """Return the calls in program order."""
        return tuple(statement for statement in self.body if isinstance(statement, Op))


ValueDomain: TypeAlias = Literal["positive", "unit", "unit_vectors"]
"""The values that a float argument takes wherever it is drawn: above 0; from -1 to 1; or vectors
along each of the last two dimensions with a norm of at most 1."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The record of one argument of a graph.

    `dtype` is torch's name without prefix; `mean` and `std` describe captured values; `min_val` and
    `max_val` bound integers; `data` holds few values, flat; `domain` is declared. `keys` are the
    fields in the file, in order; `role` names that file.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    mean: float | None = None
    std: float | None = None
    min_val: float | int | None = None
    max_val: float | int | None = None
    data: tuple[float | int | bool, ...] | None = None
    original_name: str | None = None
    keys: tuple[str, ...] = ("name", "shape", "dtype", "device", "mean", "std", "data")
    role: Literal["weight", "input"] = "weight"
    domain: ValueDomain | None = None

    @property
    def num_elements(self) -> int:
        """Return the product of the shape."""
        return math.prod(self.shape)


def main_float(tensors: Iterable[TensorSpec]) -> str | None:
    """Return the floating-point dtype of most elements of a graph's arguments; None without any.

    Examples:
        >>> main_float([TensorSpec("x", (2,), "bfloat16"), TensorSpec("y", (1,), "float32")])
        'bfloat16'
    """
    num_elements: Counter[str] = Counter()
    for spec in tensors:
        if "float" in spec.dtype:
            num_elements[spec.dtype] += spec.num_elements
    return max(num_elements, key=lambda dtype: num_elements[dtype], default=None)


@dataclass(frozen=True, slots=True)
class Graph:
    """A program with the specs of its arguments, in the order of `program.params`."""

    program: Program
    tensors: tuple[TensorSpec, ...]


def refs(arg: Arg) -> tuple[str, ...]:
    """Return the names that an argument reads, left to right, nested ones included.

    Examples:
        >>> refs(Sequence("list", (Ref("a"), 3, Slice(None, Ref("b")))))
        ('a', 'b')
    """
    if isinstance(arg, Ref):
        return (arg.name,)
    if isinstance(arg, Sequence):
        return tuple(name for inner in arg.items for name in refs(inner))
    if isinstance(arg, Slice):
        return refs(arg.start) + refs(arg.stop) + refs(arg.step)
    return ()


def op_refs(op: Op) -> tuple[str, ...]:
    """Return the names that an op reads, in the order of its arguments, then its keywords."""
    return refs(Sequence("tuple", (*op.args, *(arg for _, arg in op.kwargs))))


_DEVICE_TEXT = re.compile(r"(cpu|cuda)(:\d+)?")
_TAKES_DEVICE_TEXT = ("Tensor.to", "torch.amp.autocast_mode._enter_autocast")


def retarget(graph: Graph, kind: str, index: int | None = None) -> Graph:
    """Return the same graph with every device literal and every argument on one device.

    `kind` is "cpu" or "cuda", `index` None the current one. Device text ("cuda:0") changes as a
    `device=` keyword and as an argument of `Tensor.to` and of autocast.
    """
    device = Device(kind, index)
    program = graph.program
    body = tuple(
        _retargeted_op(statement, device) if isinstance(statement, Op) else statement
        for statement in program.body
    )
    outputs = tuple(_retargeted(arg, device, False) for arg in program.outputs)
    tensors = tuple(replace(spec, device=_device_text(device)) for spec in graph.tensors)
    return Graph(Program(program.params, body, outputs), tensors)


def _device_text(device: Device) -> str:
    return device.kind if device.index is None else f"{device.kind}:{device.index}"


def _retargeted_op(op: Op, device: Device) -> Op:
    takes_text = op.target in _TAKES_DEVICE_TEXT
    args = tuple(_retargeted(arg, device, takes_text) for arg in op.args)
    kwargs = tuple(
        (name, _retargeted(arg, device, takes_text or name == "device")) for name, arg in op.kwargs
    )
    return replace(op, args=args, kwargs=kwargs)


def _retargeted(arg: Arg, device: Device, takes_text: bool) -> Arg:
    if isinstance(arg, Device):
        return device
    if isinstance(arg, str) and takes_text and _DEVICE_TEXT.fullmatch(arg):
        return _device_text(device)
    if isinstance(arg, Sequence):
        return Sequence(arg.kind, tuple(_retargeted(inner, device, False) for inner in arg.items))
    return arg
