"""The records of profiles."""

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from passnet.bench.environment import Environment
from passnet.errors import InputError

ProfileStatus: TypeAlias = Literal["ok", "unstable", "failed"]
"""The end of a profile: measured, measured imprecisely, or not measured."""

ItemKind: TypeAlias = Literal["subgraph", "net"]

MARGIN = 0.05
"""Distance of the whole interval of a speedup from 1 for a call to be surely slower."""

LEAST_MS = 1e-4
"""Times in kernels below this count as equal."""

RESIDUE_SHARE = 0.05
"""Largest distance of the parts of a call from the whole, as a share of it."""


@dataclass(frozen=True, slots=True)
class ProfileSubject:
    """A net of the catalog, by its name, or a subgraph, with its text."""

    name: str
    kind: ItemKind
    library: str = ""
    domain: str = ""
    dtype: str = ""
    """Of a net known when it has run, as `input_mib`."""

    ops: tuple[str, ...] = ()
    """Of a subgraph only."""

    input_mib: float = 0.0
    program: str = ""
    tensors: str = ""
    weight: float = 1.0
    """Number of rows of the dataset that it stands for."""


@dataclass(frozen=True, slots=True)
class CallParts:
    """The parts of the time of a compiled call, in milliseconds."""

    guards: float
    """Dynamo's guards, evaluation of frames, and calls of graphs."""

    runtime: float
    """AOTAutograd and Inductor around the generated program."""

    wrapper: float
    """The generated Python: allocation, checks of arguments, views."""

    copies: float
    """Loops and calls that only move values, for no op of the program."""

    generated: float
    """Generated kernels."""

    library: float
    """Kernels of torch or a library."""

    @property
    def total(self) -> float:
        """The time of all parts."""
        return sum(getattr(self, part.name) for part in fields(self))

    @property
    def kernels(self) -> float:
        """The time in kernels and copies."""
        return self.copies + self.generated + self.library

    @property
    def dispatch(self) -> float:
        """The time around kernels."""
        return self.guards + self.runtime + self.wrapper


PART_NAMES = tuple(part.name for part in fields(CallParts))


@dataclass(frozen=True, slots=True)
class EagerParts:
    """The parts of the time of an eager call, in milliseconds."""

    dispatch: float
    """Time of the same ops on tensors of one element."""

    kernels: float
    share_known: float
    """Share of the time in ops that take such tensors; that of others counts as kernels."""


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """The result of one item; None was not measured."""

    name: str
    kind: ItemKind
    status: ProfileStatus
    library: str = ""
    domain: str = ""
    dtype: str = ""
    ops: tuple[str, ...] = ()
    num_ops: int = 0
    input_mib: float = 0.0
    weight: float = 1.0
    cause: str = ""
    """Cause of an unstable or failed measurement; `error` is its text."""

    error: str = ""
    eager_ms: float | None = None
    compiled_ms: float | None = None
    direct_ms: float | None = None
    """Time of the compiled graph called directly; None for several graphs."""

    speedup: float | None = None
    """Speedup of `torch.compile` over eager torch from end to end, with its 95 % interval."""

    speedup_low: float | None = None
    speedup_high: float | None = None
    parts: CallParts | None = None
    residue_ms: float | None = None
    """Time of a call beyond its parts."""

    eager: EagerParts | None = None
    self_ratio: float | None = None
    """Eager torch's first turns over its second turns; 1 on a quiet machine."""

    num_graphs: int = 0
    num_generated: int = 0
    num_library: int = 0
    num_copies: int = 0
    num_rounds: int = 0
    attempts: int = 0
    compile_s: float | None = None
    wall_s: float | None = None
    machine: str = ""

    def __post_init__(self) -> None:
        measured = (self.eager_ms, self.compiled_ms, self.speedup)
        is_known = self.parts is not None and all(value and value > 0 for value in measured)
        if self.status == "ok" and not is_known:
            raise InputError(f"profile of {self.name}: is ok, but lacks times, parts or a speedup")

    @property
    def is_slower(self) -> bool:
        """True if a compiled call is slower than eager PyTorch from end to end."""
        return self.speedup is not None and self.speedup < 1

    @property
    def is_surely_slower(self) -> bool:
        """True if the whole interval of the speedup shows a loss of more than `MARGIN`."""
        return self.speedup_high is not None and self.speedup_high < 1 / (1 + MARGIN)

    @property
    def direct_speedup(self) -> float:
        """Speedup of the compiled graph called directly."""
        return (self.eager_ms or 0.0) / (self.direct_ms or 1.0)

    @property
    def kernel_speedup(self) -> float:
        """Eager PyTorch's time in kernels over the compiled call's, at least `LEAST_MS` each."""
        assert self.eager is not None and self.parts is not None, "it was measured"
        return max(self.eager.kernels, LEAST_MS) / max(self.parts.kernels, LEAST_MS)

    @property
    def is_by_dispatch(self) -> bool:
        """True if the kernels are not slower than eager PyTorch's."""
        return self.eager is not None and self.kernel_speedup >= 1

    @property
    def residue_share(self) -> float | None:
        """Share of the call beyond its parts."""
        if self.residue_ms is None or not self.compiled_ms:
            return None
        return self.residue_ms / self.compiled_ms


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """Settings of the measurement of an item."""

    threads: int = field(default=1, metadata={"most": 1024})
    """Run torch with this many threads."""

    seconds: float = 1.0
    """Measure each item for about this many seconds; longer where it is unstable."""

    attempts: int = field(default=3, metadata={"option": "repeats"})
    """Measure an item at most this often, until it is stable."""

    timeout_s: float = 180.0
    """Give up on an item after this many seconds, compilation included."""

    memory_mib: int = 8192
    """Limit the memory of a process to this many MiB."""

    seed: int = 0
    """Draw items and inputs with this seed."""


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """The start of a run: settings, a hash of the content of all items, and the environment."""

    schema_version: int
    settings: ProfileSettings
    items_hash: str
    num_items: int
    environment: Environment
