"""Each argument's use in a graph: as an index with a bound, a weight, or a variance."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.core.records.dtypes import is_float
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Alias, Arg, Graph, Op, Ref, Sequence, op_refs, refs
from passnet.graph.values.effects import last_name, writes_first

ArgumentRole: TypeAlias = Literal["plain", "matrix", "scale", "shift", "positive"]
"""Use of a float argument: `matrix` is a weight that is summed over, `scale` and `shift` are a
norm's affine parameters, `positive` is a variance or the operand of a root or logarithm."""


@dataclass(frozen=True, slots=True)
class Use:
    """The requirements of a graph's ops on one argument.

    `bound` is the smallest size that it indexes, None if unknown. `is_pinned`: its integers reach
    an op that may not take any value, such as a divisor, a number of repeats, or a size.
    """

    role: ArgumentRole = "plain"
    bound: int | None = None
    is_pinned: bool = False


@dataclass(slots=True)
class _Flow:
    """An argument that a value rearranges, plus a constant."""

    source: str
    offset: int = 0


_KEEPS_VALUES = name_set("""
    view reshape to long int contiguous unsqueeze squeeze expand expand_as flatten transpose
    permute t clone detach type_as float repeat masked_fill
""")
"""Methods whose result holds the values of their receiver, some perhaps twice."""

_CALCULATES = name_set("""
    add iadd sub isub rsub mul imul neg abs eq ne lt le gt ge and_ or_ xor invert iand ior __and__
    __or__ __xor__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ bitwise_and bitwise_or
    bitwise_not bitwise_xor logical_and logical_or logical_not logical_xor clamp clip minimum
    maximum min max amin amax sum mean any all cumsum div truediv floordiv floor_divide mod
    remainder floor ceil round sign sin cos relu where masked_fill to float half double bfloat16
    long int short bool type type_as cat concat stack hstack vstack roll flip tril triu pad split
    chunk unbind select narrow movedim swapaxes view reshape flatten squeeze unsqueeze expand
    expand_as transpose permute t repeat contiguous clone detach alias copy dropout add_ sub_ mul_
    div_ masked_fill_ clamp_ relu_ copy_ _add_batch_dim _remove_batch_dim
""")
"""Last names of calls that take any integer except as a divisor; their results are followed."""

_DIVIDES = name_set("div div_ truediv floordiv floor_divide mod remainder")

_ENDS = name_set("""
    linear matmul bmm baddbmm addmm einsum softmax log_softmax scaled_dot_product_attention
    layer_norm rms_norm group_norm batch_norm conv1d conv2d conv3d sigmoid tanh gelu silu
""")
"""Last names of calls whose result is a float, which indexes nothing."""

_READS_FORM = name_set("""
    size dim numel sym_size new_zeros new_ones new_empty zeros_like ones_like empty_like
""")
"""Last names of calls that read an argument's shape but not its values."""

_SECOND_IS_FORM = name_set("expand_as type_as view_as reshape_as")
"""Last names of calls that read only the shape or dtype of their second argument."""

_MOVES = name_set("T mT data")
"""Attributes that hold values; others (`shape`, `dtype`, `device`) do not."""

_AFFINE: tuple[tuple[int, str, ArgumentRole], ...] = ((2, "weight", "scale"), (3, "bias", "shift"))
_ROLES: dict[str, tuple[tuple[int, str, ArgumentRole], ...]] = {
    **dict.fromkeys(
        name_set("""
            torch.nn.functional.linear torch._C._nn.linear torch.conv1d torch.conv2d torch.conv3d
            torch.conv_transpose2d
        """),
        ((1, "weight", "matrix"),),
    ),
    **dict.fromkeys(
        name_set("torch.nn.functional.layer_norm torch.layer_norm torch.nn.functional.group_norm"),
        _AFFINE,
    ),
    **dict.fromkeys(("torch.rms_norm", "torch.nn.functional.rms_norm"), _AFFINE[:1]),
    "torch.nn.functional.batch_norm": (
        (1, "running_mean", "shift"),
        (2, "running_var", "positive"),
        (3, "weight", "scale"),
        (4, "bias", "shift"),
    ),
    **dict.fromkeys(("torch.sqrt", "torch.rsqrt", "torch.log"), ((0, "input", "positive"),)),
    **dict.fromkeys(("Tensor.sqrt", "Tensor.rsqrt", "Tensor.log"), ((0, "self", "positive"),)),
}
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
"""Position and keyword of the indexed argument, the dimension (None: first), and the index."""


class _Walk:
    """A walk that follows arguments through copies, and integers through arithmetic."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = {spec.name: spec.shape for spec in graph.tensors}
        self._flows = {name: _Flow(name) for name in self._shapes}
        self._made: dict[str, set[str]] = {}  # name of a value: the arguments it is made of
        self._dtypes = {spec.name: spec.dtype for spec in graph.tensors}
        self.roles: dict[str, ArgumentRole] = dict.fromkeys(self._shapes, "plain")
        self.bounds: dict[str, list[int]] = {name: [] for name in self._shapes}
        self.pinned: set[str] = set()

    def alias(self, output: str, source: str) -> None:
        shape, sources = self._shapes.get(source), self._made.get(source, set())
        self.bind(output, self.flow(Ref(source)), sources)
        if shape is not None:
            self._shapes[output] = shape

    def bind(self, name: str | None, flow: _Flow | None, sources: set[str]) -> None:
        if name is None:
            return
        for facts in (self._flows, self._shapes, self._made):
            facts.pop(name, None)
        if flow is not None:
            self._flows[name] = flow
        if sources:
            self._made[name] = sources

    def flow(self, arg: Arg) -> _Flow | None:
        return self._flows.get(arg.name) if isinstance(arg, Ref) else None

    def op(self, op: Op) -> None:
        for position, keyword, role in _ROLES.get(op.target, ()):
            flow = self.flow(_argument(op, position, keyword))
            if flow is not None:
                self.roles[flow.source] = role
        sources = self._made_by(op)
        if sources and op.args and writes_first(op.target, dict(op.kwargs)):
            for name in refs(op.args[0]):
                self._made[name] = self._made.get(name, set()) | sources
        self.bind(op.output, self._result(op), sources)

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

    def _made_by(self, op: Op) -> set[str]:
        """Return the integer arguments that a result is made of; bound or pin some."""
        name = last_name(op.target)
        sources = self._sources(op_refs(op))
        if not sources:
            return sources
        if op.target in ("operator.getitem", "operator.setitem"):
            index = op.args[1]
            dim: int | None = 0
            for part in index.items if isinstance(index, Sequence) else (index,):
                dim = None if part is ... else dim
                self._index(part, op.args[0], dim)
                is_computed = isinstance(part, Ref) and self.flow(part) is None  # maybe a mask
                dim = None if dim is None or is_computed else dim + (part is not None)
            return self._sources((*refs(op.args[0]), *(refs(op.args[2]) if op.args[2:] else ())))
        if op.target in _INDEXED:
            table, dim_arg, index = (slot and _argument(op, *slot) for slot in _INDEXED[op.target])
            self._index(index, table, dim_arg if type(dim_arg) is int else 0)
            return self._sources(set(op_refs(op)) - set(refs(index)))
        if name in _ENDS or not reads_values(op):
            return set()
        if name in _SECOND_IS_FORM:
            return self._sources(refs(op.args[0]))
        if name == "getattr" or (name in _CALCULATES and not (name == "where" and not op.args[1:])):
            if name in _DIVIDES:
                self.pinned |= self._sources(refs(_argument(op, 1, "other")))
            return sources
        self.pinned |= sources
        return set()

    def _sources(self, names: Iterable[str]) -> set[str]:
        """Return the integer and boolean arguments that values are made of."""
        sources = set()
        for name in names:
            flow = self._flows.get(name)
            if flow is not None and not is_float(self._dtypes[flow.source]):
                sources.add(flow.source)
            sources |= self._made.get(name, set())
        return sources

    def _index(self, index: Arg, table: Arg, dim: int | None) -> None:
        """Record that `index` indexes `dim` of `table`, or pin its sources if that is unknown."""
        flow = self.flow(index)
        shape = self._shapes.get(table.name, ()) if isinstance(table, Ref) else ()
        is_bounded = flow is not None and dim is not None and -len(shape) <= dim < len(shape)
        if flow is not None and dim is not None and is_bounded:
            self.bounds[flow.source].append(max(1, shape[dim] - flow.offset))
        if flow is None or not is_bounded or flow.offset < 0 or self._dtypes[flow.source] == "bool":
            self.pinned |= self._sources(refs(index))


def reads_values(op: Op) -> bool:
    """Return whether an op reads more of its arguments than shape, dtype and device."""
    name = last_name(op.target)
    return name not in _READS_FORM and (name != "getattr" or op.args[1] in _MOVES)


def ops_with_sources(graph: Graph) -> Iterator[tuple[Op, set[str], dict[str, set[str]]]]:
    """Yield each op, the arguments that it reads, and the arguments behind every earlier value."""
    made = {spec.name: {spec.name} for spec in graph.tensors}
    for op in graph.program.body:
        if isinstance(op, Alias):
            made[op.output] = made.get(op.source, set())
        if not isinstance(op, Op):
            continue
        names = op_refs(op) if reads_values(op) else ()
        read = {source for name in names for source in made.get(name, ())}
        yield op, read, made
        if read and op.args and writes_first(op.target, dict(op.kwargs)):
            made |= {written: made.get(written, set()) | read for written in refs(op.args[0])}
        if op.output is not None:
            made[op.output] = read


def _argument(op: Op, position: int, keyword: str) -> Arg:
    if position < len(op.args):
        return op.args[position]
    return dict(op.kwargs).get(keyword)


def find_uses(graph: Graph) -> dict[str, Use]:
    """Return the ops' use of each argument, followed through views, casts, copies and offsets."""
    walk = _Walk(graph)
    for statement in graph.program.body:
        if isinstance(statement, Alias):
            walk.alias(statement.output, statement.source)
        elif isinstance(statement, Op):
            walk.op(statement)
    return {
        name: Use(role, min(walk.bounds[name], default=None), name in walk.pinned)
        for name, role in walk.roles.items()
    }
