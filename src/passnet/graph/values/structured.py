"""Values with a structure on which shortcuts fail, drawn by the ops that read an argument."""

import math
from dataclasses import dataclass, field

import numpy as np

from passnet.core.records.dtypes import LARGEST, Array, from_storage, is_float, to_storage
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Arg, Graph, Op, Sequence, TensorSpec
from passnet.graph.values.effects import last_name
from passnet.graph.values.inputs import (
    InputValue,
    in_domain,
    integer_range,
    is_additive_mask,
    is_scalar,
    make_inputs,
)
from passnet.graph.values.uses import Use, find_uses, ops_with_sources

BLOCKS = np.array([8, 16, 32, 64, 128])
"""Sizes of blocks at whose seams values are largest."""

_FAMILIES = {
    "order": name_set("max min amax amin argmax argmin aminmax cummax cummin sort argsort msort"),
    "loose": name_set("topk kthvalue median nanmedian mode sort argsort"),
    "softmax": name_set("softmax log_softmax logsumexp softmin scaled_dot_product_attention"),
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
}
"""Last names of calls, without underscores at their ends, that structures are drawn for. The order
of equal values is free in "loose" ones, unless they are stable; "write" may not write twice."""
_HAS_DIM = frozenset({"order", "loose", "softmax", "scan", "sum"})
_CALLED_FOR = {
    "seams": {"order", "softmax", "sum"}, "strides": {"sum"}, "ties": {"order"},
    "lasting": {"scan", "curve"}, "cancelling": {"sum"}, "far below": {"softmax"},
    "wide": {"curve"}, "tiny": {"divide"},
}  # fmt: skip
"""Structures of floats, and the families that call for them."""
_ORDERS = ("sorted", "reversed", "as drawn")
_INDICES = (*_ORDERS, "equal", "last", "ragged")
_MASKS = ("none", "all", "prefix", "as drawn")


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
                values[index] = in_domain(turns.values(spec, uses[spec.name], value), spec)
    return sets


def _find_readers(graph: Graph) -> dict[str, _Readers]:
    found = {spec.name: _Readers() for spec in graph.tensors}
    for op, read, _ in ops_with_sources(graph):
        name = last_name(op.target).strip("_")
        families = {family for family, members in _FAMILIES.items() if name in members}
        if dict(op.kwargs).get("stable") is True:
            families.discard("loose")
        for argument in read if families else ():
            found[argument].families |= families
            if families & _HAS_DIM and not name.endswith("_norm"):
                found[argument].dims.add(_dims(op))
    return found


def _dims(op: Op) -> tuple[int, ...]:
    """Return the dimensions that an op names; none if it names none."""
    position = 2 if last_name(op.target) in ("topk", "kthvalue", "norm") else 1
    dim: Arg = dict(op.kwargs).get("dim", op.args[position] if op.args[position:] else None)
    items = dim.items if isinstance(dim, Sequence) else (dim,)
    return tuple(item for item in items if type(item) is int)


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
        if is_float(spec.dtype) and use.role in ("plain", "positive"):
            wide = np.float64 if spec.dtype == "float64" else np.float32
            values = from_storage(even, spec.dtype).astype(wide)
            structures = ("spread", "near one")
            if use.role == "plain":
                structures = self._structures(spec)
                values = self._floats(spec, values) if structures else values
            else:
                values = self._by_rows(structures, values)
            return to_storage(values, spec.dtype)
        if is_float(spec.dtype) or spec.dtype.startswith("complex") or use.is_pinned:
            return even
        low, high = integer_range(spec, use)
        if high - low == 1:
            return (self._by_rows(_MASKS, even > low) + low).astype(even.dtype)
        kinds = _ORDERS if "write" in self.readers.families else _INDICES
        return self._by_rows(kinds, even, last=high)

    def _floats(self, spec: TensorSpec, values: Array) -> Array:
        is_positive = spec.min_val is not None and spec.min_val >= 0
        if is_positive:
            values = (values - 1) * 3
        dims = self._row_dims(values.shape)
        moved = np.moveaxis(values, dims, range(-len(dims), 0))
        rows = moved.reshape(*moved.shape[: values.ndim - len(dims)], -1)
        rows = np.roll(rows, int(self.random.integers(rows.size)))
        largest = 3.0 if spec.dtype == "float16" else 6.0
        tiny = {"float64": 1e-310, "float16": 6e-7}.get(spec.dtype, 1e-39)
        big = {"float64": 1e4, "float32": 100.0}.get(spec.dtype, 32.0)
        rows = self._by_rows(self._structures(spec), rows, largest=largest, tiny=tiny, big=big)
        values = np.moveaxis(rows.reshape(moved.shape), range(-len(dims), 0), dims)
        return np.ascontiguousarray(np.abs(values) if is_positive else values)

    def _row_dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the dimensions that make a row in this set: as an op names them, or the last."""
        rank = len(shape)
        if self.number % 4 == 3 and rank > 2:
            return tuple(range(1, rank))
        named = {
            tuple(sorted({dim % rank for dim in dims if -rank <= dim < rank}))
            for dims in self.readers.dims
        }
        groups = sorted(dims for dims in named if math.prod(shape[dim] for dim in dims) > 1)
        return groups[self.number % len(groups)] if groups else (rank - 1,)

    def _structures(self, spec: TensorSpec) -> tuple[str, ...]:
        families = self.readers.families
        chosen = [name for name, called_for in _CALLED_FOR.items() if families & called_for]
        left_out = {"ties"} if "loose" in families else set()
        left_out |= {"tiny"} if self.number == 0 else set()
        if not families and len(spec.shape) < 2:
            return ()
        return (*(name for name in chosen if name not in left_out), "suffix", "twins")

    def _by_rows(self, kinds: tuple[str, ...], values: Array, **facts: float) -> Array:
        """Return values of which each row has one of these structures, in turn."""
        rows = values.reshape(-1, values.shape[-1]).copy()
        first = self.seed + self.number * min(len(rows), len(kinds))
        turns = (np.arange(len(rows)) + first % len(kinds)) % len(kinds)
        for turn, kind in enumerate(kinds):
            chosen = np.flatnonzero(turns == turn)
            if chosen.size:
                part = rows[chosen - 1] if kind == "twins" else rows[chosen]
                rows[chosen] = _structured(kind, part, self.random, facts)
        return rows.reshape(values.shape)


def _put(rows: Array, places: Array, values: Array | float) -> Array:
    np.put_along_axis(rows, places, np.asarray(values, rows.dtype), axis=1)
    return rows


def _structured(
    kind: str, rows: Array, random: np.random.Generator, facts: dict[str, float]
) -> Array:
    """Return rows of normal values, indices or masks with a structure."""
    count, size = rows.shape
    spots, steps = random.integers(size, size=(count, 1)), np.arange(size)
    match kind:
        case "seams":  # the largest values lie at the seam of two blocks, or at the ends
            block = int(random.choice(np.append(BLOCKS[size > BLOCKS], min(size, BLOCKS[0]))))
            seam = random.integers(1, -(-size // block), count, endpoint=True)[:, None] * block
            places = np.where(random.random((count, 1)) < 0.25, [[0, size - 1]], seam + [[-1, 0]])
            heights = np.where(np.arange(count) % 2, 6.0, 2.0 ** (facts["largest"] + 2))[:, None]
            heights = heights - random.random((count, 2))
            return _put(rows * 0.25, np.minimum(places, size - 1), heights)
        case "strides":
            period = int(random.choice([2, 4, 8]))
            return rows + 4 * (steps % period == random.integers(period))
        case "ties":
            return np.rint(np.clip(rows, -1, 1))
        case "lasting":  # products, gates or decays hold on over the full length
            kinds = random.integers(3, size=(count, 1))
            gates = np.where(kinds == 1, 8 + 0.1 * rows, 0.01 * np.abs(rows))
            return np.where(kinds == 0, 1 + 0.01 * rows, gates)
        case "cancelling":
            order, half = random.permutation(size), size // 2
            large = facts["big"] * (0.5 + random.random((count, half), dtype=np.float32))
            rows[:, order[:half]] += large
            rows[:, order[half : 2 * half]] -= large
            return rows
        case "far below":  # many small exponentials weigh as much as the largest
            return _put(0.1 * rows - math.log(size) - 2 * random.random((count, 1)), spots, 0.0)
        case "wide":
            return np.sign(rows) * 2.0 ** random.uniform(-6, facts["largest"], rows.shape)
        case "tiny":
            return rows * facts["tiny"]
        case "suffix":  # a small beginning and a large rest
            return np.where(steps >= (size + spots) // 2, 4 + 2 * rows, rows * 0.01)
        case "twins":  # these are copies of the rows before
            return _put(rows, spots, np.take_along_axis(rows, spots, axis=1) * 0.5 + 2)
        case "spread":
            return 2.0 ** random.uniform(-6, 6, rows.shape)
        case "near one":
            return 1 + np.sign(rows - 1) * 2.0 ** random.uniform(-20, -2, rows.shape)
        case "sorted":
            return np.sort(rows, axis=1)
        case "reversed":
            return np.sort(rows, axis=1)[:, ::-1]
        case "equal":
            return np.broadcast_to(rows[:, :1], rows.shape)
        case "last":
            return np.full_like(rows, facts["last"])
        case "ragged":  # runs of all lengths
            starts = np.sort(random.integers(size, size=rows.shape), axis=1)
            return np.take_along_axis(np.sort(rows, axis=1), starts // 2 * 2, axis=1)
        case "none" | "all":
            return np.full_like(rows, kind == "all")
        case "prefix":
            return steps < spots
    return rows
