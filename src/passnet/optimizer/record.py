"""The record of an optimisation: every backend, its times, and the choice. It imports no torch."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.bench.environment import Environment

RECORD_FILE = "optimized.json"

BackendStatus: TypeAlias = Literal["ok", "refused", "wrong", "untried"]
"""ok: built, right and timed. refused: it cannot run this net. wrong: its outputs differ from eager
torch's. untried: the budget was spent, before it began or while it was built.
"""

Precision: TypeAlias = Literal["int8", "int4", "bf16", "fp16"]
"""A lower precision than the net's own, in which a backend computes products at least."""

Steadiness: TypeAlias = Literal["steady", "repeated", "busy"]
"""The machine while the last rounds were timed. repeated: the first ones were disturbed. busy: the
repeated ones too, or there was no time to repeat them.
"""


@dataclass(frozen=True, slots=True)
class BackendRecord:
    """One backend on inputs of one signature.

    Args:
        reason: why it was refused, wrong or untried.
        build_s: seconds of building and comparing.
        ms: milliseconds of a call with the checks of the returned net, in the same rounds as
            `speedup`; None for eager torch.
        plain_ms: the same as torch calls it, without these checks.
        error: the largest relative error of an output, against float64 where the net runs in it.
        eager_error: the same of eager torch; None where the net does not run in float64.
        compared_ms: for frozen weights, `ms` if they were compared at each call.
        bound: the largest magnitude of floats in arguments for which it is right; None for any.
        index_bounds: the least and greatest index allowed in each tensor, None for any.
        filled_rows: whether each row along a tensor's last axis must hold more than zeros.
        precision: the lower precision in which it computes; None for the net's own.
        metric: the user's metric of it.
        speedup: over eager torch, as the returned net calls it, with its 95 % interval.
    """

    engine: str
    status: BackendStatus
    reason: str | None = None
    build_s: float = 0.0
    ms: float | None = None
    plain_ms: float | None = None
    error: float | None = None
    eager_error: float | None = None
    compared_ms: float | None = None
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    says: str = ""
    filled_rows: tuple[bool, ...] = ()
    precision: Precision | None = None
    metric: float | None = None

    @property
    def used_ms(self) -> float | None:
        """Milliseconds of a call as it would be used; for eager torch without checks."""
        return self.plain_ms if self.ms is None else self.ms

    @property
    def eager_ms(self) -> float | None:
        """Milliseconds of eager torch in the rounds of `used_ms`."""
        return self.used_ms and self.speedup and self.used_ms * self.speedup


@dataclass(frozen=True, slots=True)
class PlaceRecord:
    """The ops [start, stop) of a graph of the net; `is_chosen`: a pass replaces them."""

    graph: int
    start: int
    stop: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class RangeRecord:
    """A range of ops for which passes were looked up or written.

    It occurs `num_places` times, and is replaced `num_chosen` times. `saved_ms` is the least saving
    in one place; `digest` names the entry in the library of passes, None where there is none.
    """

    ops: tuple[str, ...]
    num_places: int
    num_chosen: int
    author: str
    status: str
    eager_ms: float | None
    pass_ms: float | None
    saved_ms: float
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    error: str | None = None
    digest: str | None = None
    places: tuple[PlaceRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class RangesRecord:
    """The ranges that authors wrote for; of each graph of the net the module of each op."""

    authors: tuple[str, ...]
    ranges: tuple[RangeRecord, ...] = ()
    op_blocks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A module within the net: its name, its class, and its milliseconds in eager torch."""

    name: str
    kind: str
    ms: float


@dataclass(frozen=True, slots=True)
class SizeRange:
    """A size from `low` to `high` of some axes, which have the same size in every call.

    `places` are pairs of a tensor's number among those of a call and an axis of it; `example` is
    the size in the example.
    """

    name: str
    low: int
    high: int
    example: int
    places: tuple[tuple[int, int], ...]

    def between(self, count: int) -> tuple[int, ...]:
        """Return so many sizes at most, from the least to the greatest in equal ratios.

        >>> SizeRange("length", 1, 512, 16, ()).between(4)
        (1, 8, 64, 512)
        """
        steps = (self.low * (self.high / self.low) ** (n / (count - 1)) for n in range(count))
        return tuple(sorted({*map(round, steps)}))


@dataclass(frozen=True, slots=True)
class SizeRecord:
    """Times for some sizes, one of each range: `ms` of each backend that is kept, eager torch
    included, and the fastest of them, with its speedup and 95 % interval.
    """

    sizes: tuple[int, ...]
    chosen: str
    ms: dict[str, float]
    speedup: float
    speedup_low: float
    speedup_high: float


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """Inputs of one signature: the backends that were tried, and the chosen one.

    Args:
        ms: milliseconds of a call of the returned net.
        speedup: of the returned net over eager torch, with its 95 % interval.
        instead: the backend for calls that the chosen one refuses for their values; "" for eager.
        op_blocks: of each graph of the net the module of each op, "" for the net itself.
        uses_passes: a used backend has the chosen passes; None in older records.
        steadiness: of the rounds of the figures; None in older records.
        size_ranges: the sizes that vary from call to call; `ms`, `eager_ms` and speedups are then
            geometric means over `sizes`.
        sizes: what was measured for each combination of sizes.
        allowed_error: the relative error that the user allows; None where none is.
    """

    inputs: tuple[str, ...]
    chosen: str
    engines: tuple[BackendRecord, ...]
    ms: float
    eager_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    blocks: tuple[BlockRecord, ...] = ()
    ranges: tuple[RangeRecord, ...] = ()
    instead: str = ""
    op_blocks: tuple[tuple[str, ...], ...] = ()
    uses_passes: bool | None = None
    steadiness: Steadiness | None = None
    size_ranges: tuple[SizeRange, ...] = ()
    sizes: tuple[SizeRecord, ...] = ()
    allowed_error: float | None = None


@dataclass(frozen=True, slots=True)
class OptimizedRecord:
    """An optimised net.

    `weights` is a digest of the names, shapes and dtypes of its weights; `values` of their values,
    where a backend folds them in, else "". `freeze` promises that weights will not change. Where it
    `decodes`, the first form is of a decoder's steps, and another one of its encoder.
    """

    net: str
    weights: str
    values: str
    num_threads: int
    freeze: bool
    environment: Environment
    forms: tuple[SignatureRecord, ...]
    passnet: str
    decodes: bool = False
