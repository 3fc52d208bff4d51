"""Values with a structure on which shortcuts fail, drawn by the ops that read an argument."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from passnet.core.records.dtypes import LARGEST, Array, from_storage, is_float, to_storage
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Alias, Arg, Graph, Op, Sequence, TensorSpec, op_refs, refs
from passnet.graph.values.effects import last_name, writes_first
from passnet.graph.values.inputs import (
    InputValue,
    integer_range,
    is_additive_mask,
    is_scalar,
    make_inputs,
)
from passnet.graph.values.uses import Use, find_uses, reads_values

BLOCKS = (8, 16, 32, 64, 128)
"""Sizes of blocks at whose seams values are largest."""

_FAMILIES = {
    "order": name_set("max min amax amin argmax argmin aminmax cummax cummin sort argsort msort"),
    "loose": name_set("topk kthvalue median nanmedian mode sort argsort"),
    "softmax": name_set("""
        softmax log_softmax logsumexp softmin scaled_dot_product_attention logcumsumexp
    """),
    "scan": name_set("cumsum cumprod logcumsumexp cummax cummin lstm gru rnn_tanh rnn_relu"),
    "curve": name_set("""
        tanh exp exp2 expm1 erf erfc sigmoid gelu silu mish softplus logsigmoid elu selu celu sin
        cos hardswish hardsigmoid log1p softmax log_softmax
    """),
    "sum": name_set("""
        sum mean var std var_mean prod norm layer_norm rms_norm group_norm batch_norm instance_norm
        linear matmul bmm mm addmm baddbmm einsum conv1d conv2d conv3d avg_pool2d dot
        adaptive_avg_pool2d cumsum
    """),
    "divide": name_set("div truediv reciprocal rsqrt log log2 log10 normalize norm pow"),
    "write": name_set("scatter index_put index_copy index_fill masked_scatter put setitem"),
}  # fmt: skip
"""Last names of calls, without underscores at their ends, that structures are drawn for. The order
of equal values is free in "loose" ones, unless they are stable; "write" may not write twice."""

_HAS_DIM = frozenset({"order", "loose", "softmax", "scan", "sum"})


@dataclass(slots=True)
class _Readers:
    """The families of ops that values of an argument reach, and the dimensions they name."""

    families: set[str] = field(default_factory=set)
    dims: set[tuple[int, ...]] = field(default_factory=set)


def make_structured(graph: Graph, seed: int, count: int) -> list[list[InputValue]]:
    """Return some sets of structured inputs; equal for equal seeds and numpy.

    Rows of a float argument, and of indices and masks, take turns at the structures that their
    readers call for; each set gives a row another one. Other arguments are as in a fresh set. The
    first set has no denormal numbers, which slow processors down.
    """
    uses, readers = find_uses(graph), _find_readers(graph)
    even = make_inputs(graph, "even", seed)
    sets: list[list[InputValue]] = [list(even) for _ in range(count)]
    for index, (spec, value) in enumerate(zip(graph.tensors, even, strict=True)):
        if not isinstance(value, int) and value.size > 1 and not is_scalar(spec):
            for number, values in enumerate(sets):
                random = np.random.default_rng([seed, number, index])
                turns = _Turns(random, seed, number, readers[spec.name])
                values[index] = turns.values(spec, uses[spec.name], value)
    return sets


def _find_readers(graph: Graph) -> dict[str, _Readers]:
    found = {spec.name: _Readers() for spec in graph.tensors}
    made = {name: {name} for name in found}  # name of a value: the arguments it is made of
    for statement in graph.program.body:
        if isinstance(statement, Alias):
            made[statement.output] = made.get(statement.source, set())
        if not isinstance(statement, Op):
            continue
        op, read = statement, set[str]()
        if reads_values(op):
            read = read.union(*(made.get(name, ()) for name in op_refs(op)))
        name = last_name(op.target).strip("_")
        families = {family for family, names in _FAMILIES.items() if name in names}
        if dict(op.kwargs).get("stable") is True:
            families.discard("loose")
        for argument in read if families else ():
            found[argument].families |= families
            if families & _HAS_DIM and not name.endswith("_norm"):
                found[argument].dims.add(_dims(op))
        if read and op.args and writes_first(op.target, dict(op.kwargs)):
            for written in refs(op.args[0]):
                made[written] = made.get(written, set()) | read
        if op.output is not None:
            made[op.output] = read
    return found


def _dims(op: Op) -> tuple[int, ...]:
    """Return the dimensions that an op names; none if it names none."""
    named = dict(op.kwargs)
    position = 2 if last_name(op.target) in ("topk", "kthvalue", "norm") else 1
    dim: Arg = named.get("dim", op.args[position] if op.args[position:] else None)
    return tuple(
        item for item in (dim.items if isinstance(dim, Sequence) else (dim,)) if type(item) is int
    )


@dataclass(frozen=True, slots=True)
class _Turns:
    """The draw of one argument in one set: its rows take turns at structures."""

    random: np.random.Generator
    seed: int
    number: int
    readers: _Readers

    def values(self, spec: TensorSpec, use: Use, even: Array) -> Array:
        """Return values with structures, or as they are where none applies."""
        if is_additive_mask(spec, use):
            masked = self._by_rows(_MASKS, even != 0)
            return to_storage(np.where(masked, -LARGEST[spec.dtype], 0.0), spec.dtype)
        if is_float(spec.dtype):
            rows = from_storage(even, spec.dtype)
            if spec.dtype == "float16":
                rows = rows.astype(np.float32)
            if use.role == "positive":
                return to_storage(self._by_rows((_spread, _near_one), rows), spec.dtype)
            return to_storage(self._floats(spec, rows), spec.dtype) if use.role == "plain" else even
        if spec.dtype.startswith("complex") or use.is_pinned:
            return even
        low, high = integer_range(spec, use)
        if high - low == 1:
            return (self._by_rows(_MASKS, even > low) + low).astype(even.dtype)
        kinds = _INDICES[:NUM_ORDERS] if "write" in self.readers.families else _INDICES
        return self._by_rows(kinds, even, last=high)

    def _floats(self, spec: TensorSpec, values: Array) -> Array:
        structures = self._structures(spec)
        is_positive = spec.min_val is not None and spec.min_val >= 0
        if is_positive:
            values = (values - 1) * 3
        if not structures:
            return values
        dims = self._row_dims(values.shape)
        moved = np.moveaxis(values, dims, range(-len(dims), 0))
        rows = moved.reshape(*moved.shape[: values.ndim - len(dims)], -1)
        rows = np.roll(rows, int(self.random.integers(rows.size)))
        largest = {"float16": 3.0}.get(spec.dtype, 6.0)
        tiny = {"float64": 1e-310, "float16": 6e-7}.get(spec.dtype, 1e-39)
        big = {"float64": 1e4, "float32": 100.0}.get(spec.dtype, 32.0)
        rows = self._by_rows(structures, rows, largest=largest, tiny=tiny, big=big)
        values = np.moveaxis(rows.reshape(moved.shape), range(-len(dims), 0), dims)
        return np.ascontiguousarray(np.abs(values) if is_positive else values)

    def _row_dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the dimensions that make a row in this set: as an op names them, or the last."""
        rank = len(shape)
        groups = {
            tuple(sorted({dim % rank for dim in dims if -rank <= dim < rank}))
            for dims in self.readers.dims
        }
        groups = {dims for dims in groups if math.prod(shape[dim] for dim in dims) > 1}
        if self.number % 4 == 3 and rank > 2:
            return tuple(range(1, rank))
        return sorted(groups or {(rank - 1,)})[self.number % max(len(groups), 1)]

    def _structures(self, spec: TensorSpec) -> "tuple[_Structure, ...]":
        families = self.readers.families
        chosen = [
            structure
            for structure, called_for in _STRUCTURES.items()
            if families & called_for
            and not (structure is _ties and "loose" in families)
            and not (structure is _tiny and self.number == 0)
        ]
        return (*chosen, _suffix, _twins) if families or len(spec.shape) > 1 else ()

    def _by_rows(self, kinds: "tuple[_Structure, ...]", values: Array, **facts: float) -> Array:
        """Return values of which each row has one of these structures, in turn."""
        rows = values.reshape(-1, values.shape[-1]).copy()
        first = self.seed + self.number * min(len(rows), len(kinds))
        turns = (np.arange(len(rows)) + first % len(kinds)) % len(kinds)
        for turn, structure in enumerate(kinds):
            chosen = np.flatnonzero(turns == turn)
            if chosen.size:
                part = rows[chosen - 1] if structure is _twins else rows[chosen]
                rows[chosen] = structure(part, self.random, facts)
        return rows.reshape(values.shape)


_Facts = dict[str, float]
_Structure = Callable[[Array, np.random.Generator, _Facts], Array]
"""Returns rows [count, size] with a structure."""


def _seams(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows whose two largest values lie at the seam of two blocks, or at the ends."""
    count, size = rows.shape
    block = int(random.choice([block for block in BLOCKS if block < size] or [size]))
    seam = random.integers(1, -(-size // block), count, endpoint=True)[:, None] * block
    places = np.where(random.random((count, 1)) < 0.25, [[0, size - 1]], seam + [[-1, 0]])
    heights = np.where(np.arange(count) % 2, 6.0, 2.0 ** (facts["largest"] + 2))[:, None]
    return _put(rows * 0.25, np.minimum(places, size - 1), heights - random.random((count, 2)))


def _put(rows: Array, places: Array, values: Array | float) -> Array:
    np.put_along_axis(rows, places, np.asarray(values, rows.dtype), axis=1)
    return rows


def _suffix(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows with a small beginning and a large rest."""
    size = rows.shape[1]
    starts = random.integers(size // 2, max(size, size // 2 + 1), (len(rows), 1))
    return np.where(np.arange(size) >= starts, 4 + 2 * rows, rows * 0.01)


def _strides(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows in which every second, fourth or eighth value is larger than the others."""
    period = int(random.choice([2, 4, 8]))
    return rows + 4 * (np.arange(rows.shape[1]) % period == random.integers(period))


def _lasting(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows whose products, gates or decays hold on over their full length."""
    kind = random.integers(3, size=(len(rows), 1))
    gates = np.where(kind == 1, 8 + 0.1 * rows, 0.01 * np.abs(rows))
    return np.where(kind == 0, 1 + 0.01 * rows, gates)


def _cancelling(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows with pairs of large values whose sum is small."""
    order = random.permutation(rows.shape[1])
    half = len(order) // 2
    large = facts["big"] * (0.5 + random.random((len(rows), half), dtype=np.float32))
    rows[:, order[:half]] += large
    rows[:, order[half : 2 * half]] -= large
    return rows


def _far_below(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows in which many small exponentials together weigh as much as the largest one."""
    count, size = rows.shape
    rows = 0.1 * rows - math.log(size) - 2 * random.random((count, 1))
    return _put(rows, random.integers(size, size=(count, 1)), 0.0)


def _wide(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows with all magnitudes up to 64 (8 in half precision)."""
    return np.sign(rows) * 2.0 ** random.uniform(-6, facts["largest"], rows.shape)


def _twins(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return copies of the rows before with one value changed."""
    places = random.integers(rows.shape[1], size=(len(rows), 1))
    return _put(rows, places, np.take_along_axis(rows, places, axis=1) * 0.5 + 2)


def _spread(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    return 2.0 ** random.uniform(-6, 6, rows.shape)


def _near_one(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    return 1 + np.sign(rows) * 2.0 ** random.uniform(-20, -2, rows.shape)


def _ragged(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return sorted rows in runs of all lengths."""
    starts = np.sort(random.integers(rows.shape[1], size=rows.shape), axis=1)
    return np.take_along_axis(np.sort(rows, axis=1), starts // 2 * 2, axis=1)


def _prefix(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    """Return rows whose beginning is true, of all lengths."""
    return np.arange(rows.shape[1]) < random.integers(rows.shape[1], size=(len(rows), 1))


def _ties(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    return np.rint(np.clip(rows, -1, 1))


def _tiny(rows: Array, random: np.random.Generator, facts: _Facts) -> Array:
    with np.errstate(under="ignore"):
        return rows * facts["tiny"]


_STRUCTURES: dict[_Structure, frozenset[str]] = {
    _seams: frozenset({"order", "softmax", "sum"}),
    _strides: frozenset({"sum"}),
    _ties: frozenset({"order"}),
    _lasting: frozenset({"scan", "curve"}),
    _cancelling: frozenset({"sum"}),
    _far_below: frozenset({"softmax"}),
    _wide: frozenset({"curve"}),
    _tiny: frozenset({"divide"}),
}
"""The families that call for a structure of floats."""
_INDICES: tuple[_Structure, ...] = (
    lambda rows, random, facts: np.sort(rows, axis=1),
    lambda rows, random, facts: np.sort(rows, axis=1)[:, ::-1],
    lambda rows, random, facts: rows,
    lambda rows, random, facts: np.broadcast_to(rows[:, :1], rows.shape),
    lambda rows, random, facts: np.full_like(rows, facts["last"]),
    _ragged,
)
"""Structures of indices; the first `NUM_ORDERS` only order them."""
NUM_ORDERS = 3
_MASKS: tuple[_Structure, ...] = (
    lambda rows, random, facts: np.zeros_like(rows),
    lambda rows, random, facts: np.ones_like(rows),
    _prefix,
    lambda rows, random, facts: rows,
)
