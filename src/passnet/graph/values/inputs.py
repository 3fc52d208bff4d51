"""Values for the arguments of a graph: as recorded at capture, or fresh and random; numpy only."""

import math
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from passnet.core.records.dtypes import LARGEST, Array, from_storage, is_float, storage, to_storage
from passnet.errors import GraphError
from passnet.graph.spec import Graph, Sequence, TensorSpec, refs
from passnet.graph.values.effects import writes_first
from passnet.graph.values.fake import SYMBOL_ANNOTATION, symbol_value
from passnet.graph.values.uses import Use, find_uses, ops_with_sources

InputValue: TypeAlias = "Array | int"
"""A tensor as numpy storage (see `records.dtypes`), or a Python integer for a SymInt."""

InputKind: TypeAlias = Literal["recorded", "fresh", "extreme", "even"]

REPLAY_SPREAD = 0.2
REPLAY_LIMIT = 100.0
"""Constants of the published replay: `randn * std * 0.2 + mean`, clamped to [-100, 100]."""

MAX_INPUT_BYTES = 32 * 2**30
"""Most memory while the arguments of a graph are drawn; those of the largest public graph take 11
GB themselves.
"""
DRAW_BYTES = 40
"""Memory per element that an argument takes while it is drawn, on top of its values; of structured
values, only those of float64 take more (64).
"""

MASK_MAGNITUDE = 1e4
"""A negative recorded mean means an additive mask (0 and minus a huge number) if it or the spread
is beyond this.
"""

MASK_SHARE = 0.25
TRUE_SHARES = (0.1, 0.9)
"""Least and largest share of true in a fresh mask; between them, the recorded share."""

LEAST_POSITIVE = 2.0**-12
"""Least value of a positive argument, so that float16 holds its inverse."""
LARGEST_UNIT = 1 - 2.0**-8
"""Largest part of a unit, so that no dtype rounds it to more than 1."""

Rows: TypeAlias = tuple[tuple[float, float], ...]

SMALL_ROWS: Rows = ((1.0, 0.0), (1e-3, 0.0), (1.0, 0.0), (1.0, 0.0))
"""Factor and shift of each row of four in fresh inputs; scale 1e-3 reveals a missing epsilon."""

EXTREME_ROWS: Rows = ((1.0, 0.0), (1e-3, 0.0), (30.0, 0.0), (1.0, 1000.0))
"""The same for extreme inputs: a careless softmax fails at scale 30, a variance at shift 1000."""
ROWS: dict[InputKind, Rows] = {"fresh": SMALL_ROWS, "extreme": EXTREME_ROWS}

MIN_ROWS = 4


def make_inputs(graph: Graph, kind: InputKind, seed: int) -> list[InputValue]:
    """Return values for the arguments of a graph, in order; equal for equal seeds and numpy.

    `recorded` follows the published replay, except where nothing is recorded for an argument that
    must be positive. `fresh` betrays no statistic of the capture: normal
    activations with every fourth row small, weights scaled by 1/sqrt(fan-in), affine parameters
    around 1 and 0, variances within [0.5, 1.5], masks a quarter masked; integers within the size
    they index and the recorded range, reordered where `Use.is_pinned`. `extreme` has large and
    shifted rows besides, `even` rows of one scale. Scalars keep their recorded value. A declared
    domain holds for all kinds. Arguments without a spec, or too large, are GraphErrors.
    """
    if len(graph.tensors) != len(graph.program.params):
        raise GraphError("the graph has no shapes and dtypes for its arguments")
    num_bytes = sum(spec.num_elements * storage(spec.dtype).itemsize for spec in graph.tensors)
    num_bytes += DRAW_BYTES * max((spec.num_elements for spec in graph.tensors), default=0)
    if num_bytes > MAX_INPUT_BYTES:
        raise GraphError(
            f"drawing the arguments takes {num_bytes} bytes, more than {MAX_INPUT_BYTES}"
        )
    uses = find_uses(graph)
    values: list[InputValue] = []
    for index, (param, spec) in enumerate(zip(graph.program.params, graph.tensors, strict=True)):
        random = np.random.default_rng([seed, index])
        try:
            if param.annotation == SYMBOL_ANNOTATION:
                values.append(symbol_value(spec))
            else:  # numpy computes no array from an array of no dimension
                drawn = np.asarray(_value(spec, uses[spec.name], kind, random))
                values.append(in_domain(drawn, spec))
        except (ArithmeticError, ValueError, MemoryError) as cause:
            if isinstance(cause, GraphError):
                raise
            raise GraphError(f"argument {spec.name} cannot be drawn: {cause}") from cause
    return values


def in_domain(stored: Array, spec: TensorSpec) -> Array:
    """Return the values of an argument moved into its domain, if it has one; those inside stay."""
    if spec.domain is None:
        return stored
    values = from_storage(stored, spec.dtype).astype(np.float64)
    if spec.domain == "positive":
        values = np.maximum(np.abs(values), LEAST_POSITIVE)
    elif spec.domain == "unit":  # folded at both ends
        values = np.clip(np.abs((values - 1) % 4 - 2) - 1, -LARGEST_UNIT, LARGEST_UNIT)
    else:
        for dim in range(-min(2, values.ndim), 0):
            norms = np.linalg.norm(values, axis=dim, keepdims=True)
            values = values / np.maximum(1, norms / LARGEST_UNIT)
    return to_storage(values, spec.dtype)


def integer_pools(graph: Graph, random: np.random.Generator, spare: int) -> list[Array | None]:
    """Return flat pools of fresh values for integers and booleans; any stretch is one draw.

    A pool has `spare` extra values; floats and arguments whose values must stay have None.
    """
    uses = find_uses(graph)
    pools: list[Array | None] = []
    for param, spec in zip(graph.program.params, graph.tensors, strict=True):
        use = uses[spec.name]
        keeps = param.annotation == SYMBOL_ANNOTATION or is_scalar(spec)
        if keeps or not _is_whole(spec.dtype) or (use.is_pinned and spec.data):
            pools.append(None)
            continue
        count, row = spec.num_elements + spare, max(1, spec.shape[-1]) if spec.shape else 1
        longer = replace(spec, shape=(-(-count // row), row))
        pools.append(_whole(longer, use, "fresh", random).reshape(-1)[:count])
    return pools


def varies(graph: Graph) -> bool:
    """Return whether an output or a written argument depends on values that vary between draws."""
    uses = find_uses(graph)
    varying = {
        spec.name
        for param, spec in zip(graph.program.params, graph.tensors, strict=False)
        if param.annotation != SYMBOL_ANNOTATION and _differs(spec, uses[spec.name])
    }
    sources = {spec.name: {spec.name} for spec in graph.tensors}
    for op, read, made in ops_with_sources(graph):
        sources = made
        if read & varying and writes_first(op.target, dict(op.kwargs)):
            return True
    outputs = refs(Sequence("tuple", graph.program.outputs))
    return any(sources.get(name, set()) & varying for name in outputs)


def _differs(spec: TensorSpec, use: Use) -> bool:
    """Return whether an argument's fresh values differ between draws."""
    if is_scalar(spec) or not spec.num_elements:
        return False
    if not _is_whole(spec.dtype):
        return True
    if use.is_pinned and spec.data:
        return len(set(spec.data)) > 1
    low, high = integer_range(spec, use)
    return low < high


def is_additive_mask(spec: TensorSpec, use: Use) -> bool:
    """Return whether a float argument holds 0 and minus a huge number."""
    mean = spec.mean or 0.0
    return mean < 0 and max(-mean, spec.std or 0.0) > MASK_MAGNITUDE and use.role == "plain"


def is_scalar(spec: TensorSpec) -> bool:
    """Return whether a spec is one recorded number, which stays."""
    return spec.shape == () and (spec.data is not None or spec.mean is not None)


def _value(spec: TensorSpec, use: Use, kind: InputKind, random: np.random.Generator) -> Array:
    if is_scalar(spec):
        return _stored(spec) if spec.data else _full(spec, spec.mean)
    if kind == "recorded" and spec.data is not None:
        return _stored(spec)
    if _is_whole(spec.dtype):
        return _whole(spec, use, kind, random)
    if spec.dtype.startswith("complex"):
        parts = random.standard_normal((2, *spec.shape))
        return (parts[0] + 1j * parts[1]).astype(storage(spec.dtype))
    if kind == "recorded" and (spec.mean is not None or use.role != "positive"):
        return _recorded(spec, random)
    return _fresh(spec, use, random, ROWS.get(kind))


def _stored(spec: TensorSpec) -> Array:
    """Return the values in `spec.data`."""
    try:
        values = np.array(spec.data, dtype=_wide_dtype(spec.dtype)).reshape(spec.shape)
    except (OverflowError, ValueError) as cause:
        raise GraphError(f"argument {spec.name}: data is no {spec.dtype}: {cause}") from cause
    return to_storage(values, spec.dtype)


def _full(spec: TensorSpec, value: float | int | bool | None) -> Array:
    return to_storage(np.full(spec.shape, value, _wide_dtype(spec.dtype)), spec.dtype)


def _wide_dtype(dtype: str) -> np.dtype:
    return np.dtype(np.float32) if dtype in ("bfloat16", "float16") else storage(dtype)


def _recorded(spec: TensorSpec, random: np.random.Generator) -> Array:
    mean = 0.0 if spec.mean is None else spec.mean
    std = 1.0 if spec.std is None else spec.std
    if std == 0:
        return _full(spec, mean)
    with np.errstate(over="ignore"):  # the recorded spread of a mask is that of float's largest
        values = _normal(spec, random) * np.float32(std * REPLAY_SPREAD) + mean
    low = -REPLAY_LIMIT if spec.min_val is None else max(-REPLAY_LIMIT, spec.min_val)
    return to_storage(np.clip(np.nan_to_num(values), low, REPLAY_LIMIT), spec.dtype)


def _fresh(spec: TensorSpec, use: Use, random: np.random.Generator, rows: Rows | None) -> Array:
    if is_additive_mask(spec, use):
        masked = random.random(spec.shape, dtype=np.float32) < MASK_SHARE
        values = np.where(masked, -LARGEST[spec.dtype], 0.0)
    elif use.role == "positive" or (spec.min_val is not None and spec.min_val >= 0):
        values = 0.5 + random.random(spec.shape, dtype=np.float32)
    elif use.role == "scale":
        values = 1.0 + 0.25 * _normal(spec, random)
    elif use.role == "shift":
        values = 0.25 * _normal(spec, random)
    elif use.role == "matrix" and len(spec.shape) > 1:
        values = _normal(spec, random) / math.sqrt(max(1, math.prod(spec.shape[1:])))
    else:
        values = _normal(spec, random)
        if use.role == "plain" and rows:
            values = _scale_rows(values, rows)
    return to_storage(values, spec.dtype)


def _scale_rows(values: Array, rows: Rows) -> Array:
    """Return values with each row of four multiplied and shifted."""
    if values.ndim < 2 or values.shape[-2] < MIN_ROWS:
        return values
    pattern = np.array(rows, values.dtype)[np.arange(values.shape[-2]) % len(rows)]
    return values * pattern[:, :1] + pattern[:, 1:]


def _normal(spec: TensorSpec, random: np.random.Generator) -> Array:
    kind = np.float64 if spec.dtype == "float64" else np.float32
    return random.standard_normal(spec.shape, dtype=kind)


def _is_whole(dtype: str) -> bool:
    return not is_float(dtype) and not dtype.startswith("complex")


def _whole(spec: TensorSpec, use: Use, kind: InputKind, random: np.random.Generator) -> Array:
    """Return integers or booleans, uniform in their range; masks true about as often as recorded,
    fresh ones as in `_mask`.
    """
    if kind != "recorded" and use.is_pinned and spec.data:
        return random.permutation(_stored(spec).reshape(-1)).reshape(spec.shape)
    low, high = integer_range(spec, use, kind)
    if kind != "recorded" and high - low == 1:
        return (_mask(spec, low, random) + np.int64(low)).astype(storage(spec.dtype))
    if spec.dtype == "bool" or (high - low == 1 and spec.mean is not None):
        share = 0.5 if spec.mean is None else spec.mean - low
        mask = random.random(spec.shape, dtype=np.float32) < share
        return mask if spec.dtype == "bool" else (mask + np.int64(low)).astype(storage(spec.dtype))
    return random.integers(low, high, spec.shape, dtype=storage(spec.dtype), endpoint=True)


def integer_range(spec: TensorSpec, use: Use, kind: InputKind = "fresh") -> tuple[int, int]:
    """Return the least and largest value: as recorded, and within the size that it indexes.

    A single recorded number that may vary has the range of the bound, or else from itself half of
    the way to zero; from 0 to 1 if it is one of these.
    """
    if spec.dtype == "bool":
        return 0, 1
    low, high = 0, 1
    if spec.min_val is not None and spec.max_val is not None:
        low, high = int(spec.min_val), int(spec.max_val)
    elif spec.data:
        low, high = int(min(spec.data)), int(max(spec.data))
    elif use.bound is not None:
        high = use.bound - 1
    if kind != "recorded" and low == high and not use.is_pinned:
        if use.bound is not None:
            low, high = 0, use.bound - 1
        else:
            low, high = (0, 1) if low in (0, 1) else sorted((low, int(low / 2)))
    if use.bound is not None:
        low, high = max(low, -use.bound), min(high, use.bound - 1)
    limits = np.iinfo(storage(spec.dtype))
    low, high = max(low, int(limits.min)), min(high, int(limits.max))
    if low > high:
        raise GraphError(f"argument {spec.name}: no integer lies within [{low}, {high}]")
    return low, high


def _mask(spec: TensorSpec, low: int, random: np.random.Generator) -> Array:
    """Return a mask that is true about as often as recorded values are above `low`.

    Every half row has both values: a row all true or all false could make a softmax NaN.
    """
    share: float = 0.5
    if spec.data:
        share = sum(value > low for value in spec.data) / len(spec.data)
    elif spec.mean is not None:
        share = spec.mean - low
    elif spec.min_val is not None and spec.min_val == spec.max_val:
        share = float(spec.min_val > low)
    mask = random.random(spec.num_elements, dtype=np.float32) < np.clip(share, *TRUE_SHARES)
    half = (spec.shape[-1] + 1) // 2 if spec.shape else 0
    if half >= 2:
        halves = mask[: mask.size // half * half].reshape(-1, half)
        for missing in (True, False):
            rows = np.flatnonzero((halves != missing).all(axis=1))
            halves[rows, random.integers(half, size=rows.size)] = missing
    return mask.reshape(spec.shape)
