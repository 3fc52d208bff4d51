"""How each argument of a graph is used: as an index and up to which bound, a weight, a variance."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.graph.operators import name_set
from passnet.graph.spec import Alias, Arg, Graph, Op, Ref, Sequence

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
"""Position, keyword and role of arguments of ops."""

_INDEXED: dict[str, tuple[tuple[int, str], tuple[int, str] | None, tuple[int, str]]] = {
    "torch.nn.functional.embedding": ((1, "weight"), None, (0, "input")),
    "torch.embedding": ((0, "weight"), None, (1, "indices")),
    **dict.fromkeys(
        name_set("""
            torch.index_select Tensor.index_select torch.gather Tensor.gather torch.scatter_add
            Tensor.scatter_add_
        """),
        ((0, "input"), (1, "dim"), (2, "index")),
    ),
}
"""Position and keyword of the argument that is indexed, of the one that names the dimension (None
for the first), and of the index."""


class _Walk:
    """Follows every argument forward through ops that keep its values."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = {spec.name: spec.shape for spec in graph.tensors}
        self._flows = {name: _Flow(name) for name in self._shapes}
        self.roles: dict[str, ArgumentRole] = dict.fromkeys(self._shapes, "plain")
        self.bounds: dict[str, list[int]] = {name: [] for name in self._shapes}

    def bind(self, name: str | None, flow: _Flow | None) -> None:
        if name is None:
            return
        self._flows.pop(name, None)
        if flow is not None:
            self._flows[name] = flow

    def flow(self, arg: Arg) -> _Flow | None:
        return self._flows.get(arg.name) if isinstance(arg, Ref) else None

    def op(self, op: Op) -> None:
        for position, keyword, role in _ROLES.get(op.target, ()):
            flow = self.flow(_argument(op, position, keyword))
            if flow is not None:
                self.roles[flow.source] = role
        if op.target == "operator.getitem":
            index = op.args[1]
            for dim, part in enumerate(index.items if isinstance(index, Sequence) else (index,)):
                if part is ...:
                    break
                self._bound(part, op.args[0], dim)
        elif op.target in _INDEXED:
            table, dim, index = (slot and _argument(op, *slot) for slot in _INDEXED[op.target])
            self._bound(index, table, dim if type(dim) is int else 0)
        self.bind(op.output, self._result(op))

    def _result(self, op: Op) -> _Flow | None:
        flow = self.flow(op.args[0]) if op.args else None
        if flow is None:
            return None
        if op.target.startswith("Tensor.") and op.target.removeprefix("Tensor.") in _KEEPS_VALUES:
            return flow
        if op.target == "operator.getitem" and not isinstance(op.args[1], Ref):
            return flow
        if op.target == "operator.add" and type(op.args[1]) is int:
            return _Flow(flow.source, flow.offset + op.args[1])
        return None

    def _bound(self, index: Arg, table: Arg, dim: int) -> None:
        """Record that an argument, if `index` is one, indexes `dim` of another, `table`."""
        flow = self.flow(index)
        if flow is None or self.flow(table) is None or not isinstance(table, Ref):
            return
        shape = self._shapes.get(table.name, ())
        if -len(shape) <= dim < len(shape):
            self.bounds[flow.source].append(max(1, shape[dim] - flow.offset))


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
    for statement in graph.program.body:
        if isinstance(statement, Alias):
            walk.bind(statement.output, walk.flow(Ref(statement.source)))
        elif isinstance(statement, Op):
            walk.op(statement)
    return {
        name: Use(role, min(walk.bounds[name], default=None)) for name, role in walk.roles.items()
    }
