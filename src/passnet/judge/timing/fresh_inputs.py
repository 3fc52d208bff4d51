"""Fresh values for every timed call, at the cost of one pass over memory.

Drawing random numbers takes ten times as long as many a call. A draw instead takes the values of a
set of inputs, rolls every argument by an offset of its own, and flips the lower bits of every float
by a random mask. The result has the distribution of the set and stays within its range of exponents
(a probability stays below one), and nobody can know it before it is written. Integers and booleans
are a stretch, at a random offset, of a pool that is a little longer than the argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passnet.core.records.dtypes import Array
from passnet.graph.spec import TensorSpec
from passnet.graph.values.inputs import InputValue

FRESH_SET, RECORDED_SET, EXTREME_SET = range(3)
"""The input sets of a `FreshInputs`: recorded values are never timed. Structured inputs follow the
extreme ones, and either can miss."""

FLIPPED_BITS = {"float64": 47, "float32": 18, "float16": 5, "bfloat16": 4}
"""Lower bits of a float's mantissa that are flipped: its value moves by up to 1 part in 32 (in 8
for bfloat16), which no tolerance at t = -5 forgives."""
_MANTISSA_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
"""Bits of the mantissa; above them lie the exponent and the sign."""
FEW_VALUES = 16
"""A tensor of so few different values is a mask or a table, and stays as it is."""
POOL_SPARE = 4096
"""The number of offsets of a mask, or of a stretch of a pool."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A call's input set, and for each argument the offsets of its roll and of its mask."""

    input_set: int
    rolls: tuple[int, ...]
    masks: tuple[int, ...]


class FreshInputs:
    """Draws from some input sets, which hold the values of the arguments in order.

    `random` decides, so nobody outside may know its state. `pools` are those of
    `graph.inputs.integer_pools` with `POOL_SPARE`; without them, integers are rolled. `slack` are
    the errors that are forgiven in the outputs of each set, if any, or of the last ones.
    """

    def __init__(
        self,
        specs: Sequence[TensorSpec],
        input_sets: Sequence[Sequence[InputValue]],
        random: np.random.Generator,
        pools: Sequence[Array | None] = (),
        slack: Sequence[Sequence[float] | None] = (),
    ) -> None:
        self._random = random
        self.num_sets = len(input_sets)
        self._slack = [*[None] * (self.num_sets - len(slack)), *slack]
        first = [_without_zeros(*each) for each in zip(specs, input_sets[0], strict=True)]
        input_sets = [first, *input_sets[1:]]
        self._sizes = [0 if isinstance(value, int) else value.size for value in input_sets[0]]
        self._highest = np.maximum(self._sizes, 1)
        self._twice = [[_twice(value) for value in values] for values in input_sets]
        self._masks = [
            [_mask(spec.dtype, value, random) for spec, value in zip(specs, values, strict=True)]
            for values in input_sets
        ]
        for index, pool in enumerate(pools):
            if pool is not None:
                self._highest[index] = len(pool) - self._sizes[index]
                for values in self._twice:
                    values[index] = pool

    def slack(self, draw: Draw) -> Sequence[float] | None:
        """Return the errors that are forgiven in the outputs of a call, if any."""
        return self._slack[draw.input_set]

    def draw(self, input_set: int = 0) -> Draw:
        """Draw the values of a call from a set."""
        rolls = self._random.integers(self._highest).tolist()
        masks = self._random.integers(POOL_SPARE, size=len(rolls)).tolist()
        return Draw(input_set, tuple(rolls), tuple(masks))

    def write(self, draw: Draw, index: int, target: Array) -> None:
        """Write the values of one argument, a tensor, to memory: flat, of its storage type."""
        values, bits = self._part(draw, index, 0, self._sizes[index])
        if bits is None:
            np.copyto(target, values)
        else:
            np.bitwise_xor(values.view(bits.dtype), bits, out=target.view(bits.dtype))

    def holds(self, draw: Draw, index: int, target: Array, start: int, stop: int) -> bool:
        """Return whether elements [start, stop) of an argument are those written for a draw."""
        values, bits = self._part(draw, index, start, stop)
        stored = target[start:stop]
        if bits is None:
            return stored.tobytes() == values.tobytes()
        return bool(np.array_equal(values.view(bits.dtype) ^ bits, stored.view(bits.dtype)))

    def _part(self, draw: Draw, index: int, start: int, stop: int) -> tuple[Array, Array | None]:
        """Return part of a set's rolled values, and the bits to flip in them, if any."""
        first = draw.rolls[index]
        values = self._twice[draw.input_set][index][first + start : first + stop]
        mask = self._masks[draw.input_set][index]
        if mask is None:
            return values, None
        first = draw.masks[index]
        return values, mask[first + start : first + stop]


def _twice(value: InputValue) -> Array:
    if isinstance(value, int):
        return np.empty(0)
    flat = np.ascontiguousarray(value).reshape(-1)
    return np.concatenate([flat, flat])


def _without_zeros(spec: TensorSpec, value: InputValue) -> InputValue:
    """Return a tensor in float16 with the least normal numbers for zeros and denormals.

    One that holds some would only be rolled. One of few values, such as a mask,
    stays; so do other dtypes, in which products of the least normal numbers are denormal.
    """
    if spec.dtype != "float16" or isinstance(value, int) or value.size < 2:
        return value
    if np.unique(np.ascontiguousarray(value).reshape(-1)[:4096]).size <= FEW_VALUES:
        return value
    exponents, _ = _exponents(spec.dtype, value)
    bits = np.ascontiguousarray(value).view(exponents.dtype).copy()
    bits[exponents == 0] |= exponents.dtype.type(1 << _MANTISSA_BITS[spec.dtype])
    return bits.view(value.dtype)


def _exponents(dtype: str, value: Array) -> tuple[Array, int]:
    """Return the bits of the exponents, in place, and those of infinities and NaN."""
    unsigned = np.dtype(f"u{value.dtype.itemsize}")
    most = (1 << (8 * unsigned.itemsize - 1)) - (1 << _MANTISSA_BITS[dtype])
    return np.ascontiguousarray(value).view(unsigned) & unsigned.type(most), most


def _mask(dtype: str, value: InputValue, random: np.random.Generator) -> Array | None:
    """Return random lower bits for an argument; None where its values must stay.

    A single number (an epsilon, a scale) stays. So does a tensor with zeros or infinities: flipped,
    a zero would become denormal, which slows processors down.
    """
    if dtype not in FLIPPED_BITS or isinstance(value, int) or value.size < 2:
        return None
    exponents, most = _exponents(dtype, value)
    if ((exponents == 0) | (exponents == most)).any():
        return None
    count = value.size + POOL_SPARE
    return random.integers(0, 1 << FLIPPED_BITS[dtype], count, dtype=exponents.dtype)
