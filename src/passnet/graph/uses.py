"""How each argument of a graph is used: as an index and up to which bound, a weight, a variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from passnet.graph.operators import name_set
from passnet.graph.spec import Alias, Arg, Graph, Op, Ref, Release, Sequence

ArgumentRole: TypeAlias = Literal["plain", "matrix", "scale", "shift", "positive"]
"""What a float argument is for: `matrix` a weight that is summed over, `scale` and `shift` the
affine parameters of a norm, `positive` a variance or the operand of a root or logarithm."""


@dataclass(frozen=True, slots=True)
class Use:
    """What the ops of a graph expect of one argument.

    `bound` is the smallest size that the argument indexes (None when it indexes nothing known).
    """

    role: ArgumentRole = "plain"
    bound: int | None = None


@dataclass(slots=True)
class _Flow:
    """The argument that a value is a plain rearrangement of, plus a constant."""

    source: str
    offset: int = 0


_KEEPS_VALUES = name_set("""
    view reshape to long int contiguous unsqueeze squeeze expand expand_as flatten transpose
    permute t clone detach type_as float repeat masked_fill
""")
"""Methods whose result holds the values of their receiver (possibly some of them twice)."""

_ROLES: dict[str, tuple[tuple[int, str, ArgumentRole], ...]] = {
    "torch.nn.functional.linear": ((1, "weight", "matrix"),),
    "torch._C._nn.linear": ((1, "weight", "matrix"),),
    "torch.conv1d": ((1, "weight", "matrix"),),
    "torch.conv2d": ((1, "weight", "matrix"),),
    "torch.conv3d": ((1, "weight", "matrix"),),
    "torch.conv_transpose2d": ((1, "weight", "matrix"),),
    "torch.nn.functional.layer_norm": ((2, "weight", "scale"), (3, "bias", "shift")),
    "torch.layer_norm": ((2, "weight", "scale"), (3, "bias", "shift")),
    "torch.nn.functional.group_norm": ((2, "weight", "scale"), (3, "bias", "shift")),
    "torch.rms_norm": ((2, "weight", "scale"),),
    "torch.nn.functional.rms_norm": ((2, "weight", "scale"),),
    "torch.nn.functional.batch_norm": (
        (1, "running_mean", "shift"),
        (2, "running_var", "positive"),
        (3, "weight", "scale"),
        (4, "bias", "shift"),
    ),
    "torch.sqrt": ((0, "input", "positive"),),
    "torch.rsqrt": ((0, "input", "positive"),),
    "torch.log": ((0, "input", "positive"),),
    "Tensor.sqrt": ((0, "self", "positive"),),
    "Tensor.rsqrt": ((0, "self", "positive"),),
    "Tensor.log": ((0, "self", "positive"),),
}

_INDEXED: dict[str, tuple[int, int | None, int]] = {
    # target: (argument that is indexed, argument that names the dimension, the index itself)
    "torch.nn.functional.embedding": (1, None, 0),
    "torch.embedding": (0, None, 1),
    "torch.index_select": (0, 1, 2),
    "Tensor.index_select": (0, 1, 2),
    "torch.gather": (0, 1, 2),
    "Tensor.gather": (0, 1, 2),
    "torch.scatter_add": (0, 1, 2),
    "Tensor.scatter_add_": (0, 1, 2),
}
_KEYWORDS = {"input": 0, "dim": 1, "index": 2}


@dataclass(slots=True)
class _Found:
    role: ArgumentRole = "plain"
    bounds: list[int] = field(default_factory=list)


class _Walk:
    """Follows every argument forward through ops that keep its values."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = {item.name: item.shape for item in graph.tensors}
        self._flows = {item.name: _Flow(item.name) for item in graph.tensors}
        self.found = {item.name: _Found() for item in graph.tensors}

    def alias(self, item: Alias) -> None:
        self._bind(item.output, self._flows.get(item.source))

    def _bind(self, name: str | None, flow: _Flow | None) -> None:
        if name is None:
            return
        self._flows.pop(name, None)
        if flow is not None:
            self._flows[name] = flow

    def op(self, op: Op) -> None:
        for position, keyword, role in _ROLES.get(op.target, ()):
            flow = self._flow(_argument(op, position, keyword))
            if flow is not None:
                self.found[flow.source].role = role
        self._indexes(op)
        self._bind(op.output, self._result(op))

    def _flow(self, arg: Arg) -> _Flow | None:
        return self._flows.get(arg.name) if isinstance(arg, Ref) else None

    def _result(self, op: Op) -> _Flow | None:
        flow = self._flow(op.args[0]) if op.args else None
        if flow is None:
            return None
        if op.target.startswith("Tensor.") and op.target.removeprefix("Tensor.") in _KEEPS_VALUES:
            return flow
        if op.target == "operator.getitem" and not isinstance(op.args[1], Ref):
            return flow
        if op.target == "operator.add" and type(op.args[1]) is int:
            return _Flow(flow.source, flow.offset + op.args[1])
        return None

    def _indexes(self, op: Op) -> None:
        if op.target == "operator.getitem":
            self._getitem(op)
            return
        where = _INDEXED.get(op.target)
        if where is None:
            return
        table, dim, index = (
            None if position is None else _argument(op, position, _keyword(op, position))
            for position in where
        )
        size = self._size(table, dim if type(dim) is int else 0)
        self._bound(index, size)

    def _getitem(self, op: Op) -> None:
        index = op.args[1]
        items = index.items if isinstance(index, Sequence) else (index,)
        for dim, item in enumerate(items):
            if item is ...:
                return
            self._bound(item, self._size(op.args[0], dim))

    def _size(self, table: Arg, dim: int) -> int | None:
        flow = self._flow(table)
        if flow is None or not isinstance(table, Ref) or table.name not in self._shapes:
            return None
        shape = self._shapes[table.name]
        return shape[dim] if -len(shape) <= dim < len(shape) else None

    def _bound(self, index: Arg, size: int | None) -> None:
        flow = self._flow(index)
        if flow is not None and size is not None:
            self.found[flow.source].bounds.append(max(1, size - flow.offset))


def _keyword(op: Op, position: int) -> str:
    if op.target.endswith("embedding"):
        return ("input", "weight")[position]
    return next((name for name, place in _KEYWORDS.items() if place == position), "")


def _argument(op: Op, position: int, keyword: str) -> Arg:
    if position < len(op.args):
        return op.args[position]
    return dict(op.kwargs).get(keyword)


def find_uses(graph: Graph) -> dict[str, Use]:
    """How the ops use each argument, by name.

    An argument is followed through views, casts, copies, and the addition of an integer (position
    ids start at an offset in some nets).
    """
    walk = _Walk(graph)
    for item in graph.program.body:
        if isinstance(item, Alias):
            walk.alias(item)
        elif not isinstance(item, Release):
            walk.op(item)
    return {
        name: Use(found.role, min(found.bounds, default=None)) for name, found in walk.found.items()
    }
