"""What an optimisation leaves behind: every way that was tried, its times, and what was chosen.

It imports no torch, so that tables and pages can be made of it anywhere.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.bench.environment import Environment

RECORD_FILE = "optimized.json"

BackendStatus: TypeAlias = Literal["ok", "refused", "wrong", "untried"]
"""ok: built, right and timed. refused: it cannot run this net. wrong: it returns something else
than eager torch. untried: the budget was spent."""


@dataclass(frozen=True, slots=True)
class BackendRecord:
    """One backend on inputs of one signature.

    Args:
        engine: its name, one of `backends.BACKENDS`, or "passes".
        status: what came of it.
        reason: why it was refused or is wrong.
        build_s: seconds that building it took.
        ms: milliseconds of a call, with the checks that the returned net makes; None without.
        plain_ms: the same as torch calls it, without checks of ours and with its own.
        error: the largest relative error of an output, beside float64 where the net runs in it.
        eager_error: eager torch's own; None where the net does not run in float64.
        compared_ms: where weights are folded in and will not change, what `ms` would be if they
            were compared at each call; None elsewhere.
        bound: the largest magnitude of floats in arguments for which it is right; None for any.
        index_bounds: for each tensor argument the smallest and largest whole number for which it is
            right, None where it may be any; empty where all may.
        speedup: over eager torch, as the returned net calls it; None where it was not timed.
        speedup_low: the lower bound of its 95 % interval.
        speedup_high: and the upper one.
        says: what the backend is, in words.
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

    @property
    def used_ms(self) -> float | None:
        """Milliseconds of a call as it would be used: of eager torch itself, without checks."""
        return self.plain_ms if self.ms is None else self.ms


@dataclass(frozen=True, slots=True)
class PlaceRecord:
    """The ops [start, stop) of a graph of the net, by its number, and whether a pass was chosen to
    replace them.
    """

    graph: int
    start: int
    stop: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class RangeRecord:
    """A range of ops that passes were looked up or written for.

    Args:
        ops: what it calls, in order.
        num_places: how often it is in the net.
        num_chosen: in how many of these the pass was chosen.
        author: who wrote the pass.
        status: what came of it.
        eager_ms: a call by eager torch, None where it was not timed.
        pass_ms: and by the pass.
        saved_ms: what it saves at least in one place.
        speedup: eager torch's time over the pass's, with the bounds of its 95 % interval.
        error: what went wrong, or which output differs.
        digest: the name of its entry in the library of passes; None where it is not kept.
        places: where it is in the net.
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
    """The ranges that some authors were asked for passes for, and of each graph of the net the
    module that each op is from.
    """

    authors: tuple[str, ...]
    ranges: tuple[RangeRecord, ...] = ()
    op_blocks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A module within the net, by its name and the name of its class, and the milliseconds that it
    takes in eager torch.
    """

    name: str
    kind: str
    ms: float


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """Inputs of one signature: what was tried for them, and what is used.

    Args:
        inputs: each of them in words.
        chosen: the backend that is used.
        engines: all backends.
        ms: milliseconds of a call of the net that is returned.
        eager_ms: and of the net in eager torch.
        speedup: of the net that is returned over eager torch, with its 95 % interval.
        blocks: the modules within the net, in the order in which they first run.
        ranges: the ranges that passes were looked for.
        instead: the way for calls that the chosen one does not run because of the values of weights
            or arguments; "" for eager torch.
        op_blocks: of each graph of the net the module that each op is from, "" for the net itself.
        uses_passes: whether a way that is used has the passes that were chosen; None where that was
            not recorded.
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


@dataclass(frozen=True, slots=True)
class OptimizedRecord:
    """A net that was optimised.

    Args:
        net: the name of its class.
        weights: a digest of the names, shapes and dtypes of its weights.
        values: a digest of their values, where some way folds them in; "" elsewhere.
        num_threads: torch's threads that it was made and timed with.
        freeze: whether weights will not change, so that folded ones are not compared.
        environment: where it was made.
        forms: one for each form of inputs.
        passnet: the version of this package.
    """

    net: str
    weights: str
    values: str
    num_threads: int
    freeze: bool
    environment: Environment
    forms: tuple[SignatureRecord, ...]
    passnet: str
