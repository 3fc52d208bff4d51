"""The capture record of one net, its settings, and the name of its entry."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.core.jobs.process import JobLimits

Domain: TypeAlias = Literal["nlp", "cv", "multimodal", "audio", "other"]
DOMAINS: tuple[Domain, ...] = ("nlp", "cv", "multimodal", "audio", "other")
"""Source: PassNet paper, Section 3."""

Mode: TypeAlias = Literal["fake", "real"]
"""fake: weights without memory. real: weights as they are initialised."""

CaptureFailure: TypeAlias = Literal[
    "no_entry", "missing_package", "build_error", "forward_error", "data_dependent", "trace_error",
    "unsupported_graph", "timeout", "out_of_memory", "crash",
]  # fmt: skip
"""The cause why a net gave no graphs: no_entry if the entry gives no net; forward_error if the net
also raises without Dynamo; data_dependent if it reads values of fake tensors; crash if the process
ended.
"""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Settings of a capture."""

    mode: Literal["auto", "fake", "real"] = field(default="auto", metadata={"option": "weights"})
    """Build nets with weights without memory (fake), with values (real), or real where fake fails
    (auto).
    """

    train: bool = False
    """Capture the forward pass of training instead of evaluation."""

    backward: bool = False
    """With --train, also capture the graphs of gradients."""

    check: bool = True
    """Run every graph and compare it with its net, where the net fits."""

    check_seconds: float = 20.0
    """Most seconds for the two runs of a check together."""

    check_parameters: int = 100_000_000
    """Most parameters of a net that is run."""

    limits: JobLimits = JobLimits()
    """Limits of a worker."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """The five constraints on all graphs of a net (PassNet paper, Section 3).

    `runnable`: printed, parsed and built again, the graphs give what the net gives; None with the
    reason `unchecked`. `max_error`: the largest difference, in standard deviations of the output.
    `serialisable`: text and records give the same graph. `decomposable`: the text is a straight
    line of single ops. `analysable`: shapes and dtypes follow without a run. `custom_ops`: ops
    beyond torch's.
    """

    runnable: bool | None = None
    serialisable: bool = False
    decomposable: bool = False
    analysable: bool = False
    custom_ops: tuple[str, ...] = ()
    max_error: float | None = None
    unchecked: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GraphNote:
    """One graph of a net; `is_kept`: it can be read again, and its shapes follow."""

    structure: str
    literals: str
    full: str
    num_ops: int
    num_arguments: int
    num_calls: int
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Flow:
    """The numbers of graphs that ran, and (call, argument, source call, output) where one feeds
    another.
    """

    calls: tuple[int, ...] = ()
    edges: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NetRecord:
    """The result of one entry. `cause` and `error` are set without graphs; `fake_error` is the
    error with fake weights where real ones were tried. `backward` are the graphs of gradients.
    `file_hash` is the SHA-256 of the user's file. Times are wall times of building, tracing and
    checking.
    """

    entry: str
    status: Literal["captured", "failed"]
    cause: CaptureFailure | None = None
    error: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    mode: Mode | None = None
    fake_error: str | None = None
    domain: Domain = "other"
    task: str = ""
    changes: tuple[str, ...] = ()
    num_parameters: int | None = None
    graphs: tuple[GraphNote, ...] = ()
    backward: tuple[GraphNote, ...] = ()
    flow: Flow = Flow()
    constraints: Constraints | None = None
    build_s: float | None = None
    dynamo_s: float | None = None
    trace_s: float | None = None
    check_s: float | None = None
    wall_s: float | None = None
    peak_mib: float | None = None
    file_hash: str | None = None

    @property
    def library(self) -> str:
        """The library of the entry, as `library_of` has it."""
        return library_of(self.entry)


def is_file(entry: str) -> bool:
    """Return whether an entry is a function in a file: `path/to/file.py:function`."""
    return ".py:" in entry


def entry_file(entry: str) -> Path | None:
    """Return the Python file that an entry names; None for LIBRARY/NET."""
    match = re.match(r"(.+?\.py)[:/]", entry)
    return Path(match[1]) if match else None


def split_entry(entry: str) -> tuple[str, str]:
    """Return the library of an entry, a name or the path of a catalog file, and the net's name.

    Examples:
        >>> split_entry("timm/resnet18"), split_entry("nets/own.py/small")
        (('timm', 'resnet18'), ('nets/own.py', 'small'))
    """
    path, ending, name = entry.partition(".py/")
    if ending:
        return f"{path}.py", name
    library, _, name = entry.partition("/")
    return library, name


def library_of(entry: str) -> str:
    """Return the library of an entry: "file" for a function, the stem of a catalog file's name.

    Examples:
        >>> library_of("timm/resnet18"), library_of("nets/own.py/small"), library_of("own.py:small")
        ('timm', 'own', 'file')
    """
    return "file" if is_file(entry) else Path(split_entry(entry)[0]).stem
