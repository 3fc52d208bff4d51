"""From torch.fx: a graph as a `Program`, and the specs of its tensors."""

import keyword
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.errors import CaptureError, GraphError
from passnet.graph import spec
from passnet.graph.fx.operators import IN_PLACE_TEXT
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.text.parse import RESERVED


def target_name(node: torch.fx.Node) -> str:
    """Return a `Program`'s name for a node's target; raise GraphError if it is no call."""
    if node.op == "call_method":
        name = "abs" if node.target == "__abs__" else node.target  # the builtin, up to torch 2.11
        return f"Tensor.{name}"
    if node.op == "call_function":
        return function_name(node.target)  # type: ignore[arg-type]
    raise GraphError(f"node {node.name}: {node.op} {node.target} has no place in a graph")


_NAMES: dict[Any, str] = {getattr: "getattr", operator.abs: "torch.abs"}


def function_name(function: Callable[..., Any]) -> str:
    """Return the dotted name of a function of torch or of `operator`."""
    name = _NAMES.get(function)
    if name is None:
        name = torch.fx.node._get_qualified_name(function)
        if name.startswith("_operator."):
            name = "operator." + name.removeprefix("_operator.")
        _NAMES[function] = name
    return name


def program_from_fx(graph: torch.fx.Graph) -> spec.Program:
    """Return an fx graph's program; raise GraphError for submodules and odd arguments."""
    return _Converter().program(graph)


class _Converter:
    def __init__(self) -> None:
        self._names: dict[torch.fx.Node, str] = {}
        self._used: set[str] = set(RESERVED)

    def program(self, graph: torch.fx.Graph) -> spec.Program:
        params: list[spec.Param] = []
        body: list[spec.Statement] = []
        outputs: tuple[spec.Arg, ...] = ()
        order = {node: index for index, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            if node.op == "placeholder":
                params.append(spec.Param(self._name(node, str(node.target)), _annotation(node)))
            elif node.op == "output":
                value = node.args[0]
                values = value if isinstance(value, (tuple, list)) else (value,)
                outputs = self._args(values, node)
            else:
                body.extend(self._statements(node, order))
        return spec.Program(tuple(params), tuple(body), outputs)

    def _name(self, node: torch.fx.Node, target: str) -> str:
        base = target if target.isidentifier() and not keyword.iskeyword(target) else node.name
        name, number = base, 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._names[node] = name
        return name

    def _statements(
        self, node: torch.fx.Node, order: dict[torch.fx.Node, int]
    ) -> list[spec.Statement]:
        target = target_name(node)
        args = self._args(node.args, node)
        kwargs = tuple((name, self._arg(value, node)) for name, value in node.kwargs.items())
        if target == "operator.setitem" and not node.users:
            return [spec.Op(None, target, args, kwargs)]
        first = node.args[0] if node.args else None
        name = self._name(node, node.name)
        in_place = target.removeprefix("operator.") in IN_PLACE_TEXT
        # `x += y` gives the name x to the result, which is the same tensor; the call form is kept
        # where the old x is read again, since x could be a number.
        is_last_use = isinstance(first, torch.fx.Node) and all(
            order[user] <= order[node] for user in first.users
        )
        if in_place and is_last_use and isinstance(args[0], spec.Ref):
            return [spec.Op(args[0].name, target, args, kwargs), spec.Alias(name, args[0].name)]
        return [spec.Op(name, target, args, kwargs)]

    def _args(self, values: Iterable[Any], node: torch.fx.Node) -> tuple[spec.Arg, ...]:
        return tuple(self._arg(value, node) for value in values)

    def _arg(self, value: Any, node: torch.fx.Node) -> spec.Arg:
        if isinstance(value, torch.fx.Node):
            return spec.Ref(self._names[value])
        if isinstance(value, (tuple, list)):
            is_size = isinstance(value, torch.Size)
            kind = "size" if is_size else "tuple" if isinstance(value, tuple) else "list"
            return spec.Sequence(kind, self._args(value, node))
        if isinstance(value, slice):
            return spec.Slice(*self._args((value.start, value.stop, value.step), node))
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return spec.TorchName(str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return spec.Device(value.type, value.index)
        if value is None or value is ... or isinstance(value, (bool, int, float, str)):
            return value
        raise GraphError(f"node {node.name}: the {type(value).__name__} {value!r} is no literal")


def _annotation(node: torch.fx.Node) -> str | None:
    if node.type is None:
        return None
    name = getattr(node.type, "__qualname__", str(node.type))
    return f"{node.type.__module__}.{name}" if hasattr(node.type, "__module__") else name


MAX_DATA_ELEMENTS = 64
"""Largest integer argument, in elements, whose values are recorded."""

MAX_COUNTED = 2**18
"""Elements, about, of a float argument that mean and standard deviation are taken from."""

Sampler: TypeAlias = Callable[[torch.Tensor], torch.Tensor | None]
"""A function that returns some values for a tensor without values, or None."""


def spec_from_tensor(
    name: str, value: torch.Tensor, sample: Sampler | None = None
) -> spec.TensorSpec:
    """Return a tensor's spec, with statistics if it, or its `sample`, has values.

    Floats get mean and deviation, integers their range and, when few, values; scalars keep theirs.
    Masks, booleans and integers of two values, get a mean too, which gives the share of true.
    Infinities, as of masks and limits, count as the largest finite numbers.
    """
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES:
        raise CaptureError(f"argument {name} has dtype {dtype}, which graphs cannot hold")
    shape = tuple(int(size) for size in value.shape)
    mean = std = low = high = data = None
    tensor = value.detach()
    is_real = tensor.dtype.is_floating_point
    if is_fake(tensor):
        values = sample(tensor) if sample is not None else None
        if values is not None:
            mean, std = _mean_and_std(values.double())
    elif tensor.numel() and not tensor.dtype.is_complex:
        if is_real:
            step = max(1, tensor.numel() // MAX_COUNTED) | 1  # odd, lest it meet a power of two
            tensor = _without_infinity(tensor.reshape(-1)[::step])
            mean, std = _mean_and_std(tensor.double())
        else:
            low, high = int(tensor.min()), int(tensor.max())
            if tensor.dtype is torch.bool or high - low == 1:
                share = int((tensor == high).count_nonzero()) / tensor.numel()
                mean = low + share if high > low else float(low)
        if not shape or (not is_real and tensor.numel() <= MAX_DATA_ELEMENTS):
            data = tuple(tensor.reshape(-1).tolist())
            if is_real and not math.isfinite(data[0]):
                data = None  # records hold no NaN
    keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
    if low is not None:
        keys += ("min_val", "max_val")
    return spec.TensorSpec(
        name, shape, dtype, str(value.device), mean, std, low, high, data, keys=keys
    )


def _without_infinity(values: torch.Tensor) -> torch.Tensor:
    """Return values with the largest finite numbers, of float32 at most, for infinities."""
    largest = min(torch.finfo(values.dtype).max, torch.finfo(torch.float32).max)
    return torch.where(values.isinf(), values.sign() * largest, values)


def _mean_and_std(values: torch.Tensor) -> tuple[float | None, ...]:
    """Return mean and standard deviation; None for one that is not finite."""
    numbers = (float(values.mean()), float(values.std(correction=0)))
    return tuple(number if math.isfinite(number) else None for number in numbers)


def is_fake(value: torch.Tensor) -> bool:
    """Return whether a tensor has a shape but no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor) or value.is_meta
