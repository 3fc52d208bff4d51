"""Records of mined graphs and of nets at other sizes, and their totals."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.core.jobs.run_folder import last_records
from passnet.data.capture.record import library_of

RECORDS_FILE = "graphs.jsonl"
SIZES_FILE = "sizes.jsonl"
TOP_REASONS = 10
MAX_BRIEF_CHARACTERS = 100

SizeFailure: TypeAlias = Literal[
    "no_size",
    "no_library",
    "refused_by_net",
    "other_graph",
    "refused_by_op",
    "too_large",
    "timeout",
    "crash",
]
"""The cause why a graph was not made at another size: no_size if the inputs of the net name no
batch; no_library, which a resumed build tries again; refused_by_net if the net cannot be built,
called or traced; other_graph if its ops or data flow differ; refused_by_op if an op takes no such
shapes.
"""


UNTRIED: tuple[SizeFailure, ...] = ("no_size", "no_library")
"""Causes that keep a net from being tried at a size."""


@dataclass(frozen=True, slots=True)
class MinedRecord:
    """The result of mining one graph: counts of ranges by kind, reason and dtype, and errors."""

    graph: str
    num_ops: int
    found: dict[str, int]
    refused: dict[str, int]
    reasons: dict[str, int]
    variants: dict[str, int] = field(default_factory=dict)
    unvaried: dict[str, str] = field(default_factory=dict)
    error: str | None = None

    @property
    def has_rows(self) -> bool:
        """True if a file holds the graph's rows."""
        return any(self.found.values())


@dataclass(frozen=True, slots=True)
class MinedCounts:
    """Totals over all mined graphs: ranges by kind and reason, and graphs by dtype."""

    num_graphs: int
    num_ops: int
    num_failed: int
    found: dict[str, int]
    refused: dict[str, int]
    reasons: dict[str, int]
    varied: dict[str, int]
    unvaried: dict[str, int]


@dataclass(frozen=True, slots=True)
class SizedGraph:
    """A graph at another size: its rows and its ranges that could not be cut, or a failure."""

    graph: str
    num_rows: int = 0
    num_lost: int = 0
    cause: SizeFailure | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SizedRecord:
    """One net at one size; `axes` are the first capture's, `size` is "batch=4,sequence=16"."""

    key: str
    entry: str
    axes: dict[str, int]
    size: str
    graphs: tuple[SizedGraph, ...]
    wall_s: float = 0.0

    @property
    def has_rows(self) -> bool:
        """True if a file holds the rows of the net at this size."""
        return any(graph.num_rows for graph in self.graphs)


@dataclass(frozen=True, slots=True)
class SizedShare:
    """Totals of some graphs at other sizes, each counted once a size; see `UNTRIED`."""

    num_tried: int
    num_made: int
    num_rows: int
    wall_s: float


@dataclass(frozen=True, slots=True)
class SizedCounts:
    """Totals of all nets at other sizes, by library and changed axes, and of failures."""

    num_nets: int
    whole: SizedShare
    libraries: dict[str, SizedShare]
    axes: dict[str, SizedShare]
    causes: dict[str, int]
    reasons: dict[str, int]


def read_sized_records(out: Path) -> dict[str, SizedRecord]:
    """Read the records of nets at other sizes by key; a torn last line is skipped."""
    return last_records(out / SIZES_FILE, SizedRecord, lambda record: record.key)


def read_mined_records(out: Path) -> dict[str, MinedRecord]:
    """Read the records of a build by graph; a torn last line is skipped."""
    return last_records(out / RECORDS_FILE, MinedRecord, lambda record: record.graph)


def count_mined(records: Iterable[MinedRecord]) -> MinedCounts | None:
    """Add up records; None without any, as in a dataset that was not mined here."""
    records = list(records)
    if not records:
        return None
    return MinedCounts(
        num_graphs=len(records),
        num_ops=sum(record.num_ops for record in records),
        num_failed=sum(record.error is not None for record in records),
        found=dict(sorted(_sum(record.found for record in records).items())),
        refused=dict(sorted(_sum(record.refused for record in records).items())),
        reasons=dict(_sum(record.reasons for record in records).most_common(TOP_REASONS)),
        varied=dict(sorted(_sum([*record.variants] for record in records).items())),
        unvaried=dict(sorted(_sum([*record.unvaried] for record in records).items())),
    )


def _sum(counts: Iterable[Mapping[str, int] | list[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total


def count_sized(records: Iterable[SizedRecord]) -> SizedCounts | None:
    """Add up records of nets at other sizes; None without any."""
    records = list(records)
    if not records:
        return None
    axes = {record.entry: record.axes for record in records if record.axes}
    libraries: dict[str, list[SizedRecord]] = {}
    by_axes: dict[str, list[SizedRecord]] = {}
    for record in records:
        libraries.setdefault(library_of(record.entry), []).append(record)
        names = ", ".join(sorted(axes.get(record.entry, {}))) or "none"
        by_axes.setdefault(names, []).append(record)
    failed = [graph for record in records for graph in record.graphs if graph.cause is not None]
    reasons = Counter(f"{graph.cause}: {_brief(graph.reason)}" for graph in failed if graph.reason)
    return SizedCounts(
        len({record.entry for record in records}),
        _share(records),
        {name: _share(group) for name, group in sorted(libraries.items())},
        {name: _share(group) for name, group in sorted(by_axes.items())},
        dict(Counter(str(graph.cause) for graph in failed).most_common()),
        dict(reasons.most_common(TOP_REASONS)),
    )


def _share(records: Iterable[SizedRecord]) -> SizedShare:
    records = list(records)
    tried = [graph for record in records for graph in record.graphs if graph.cause not in UNTRIED]
    return SizedShare(
        len(tried),
        sum(graph.cause is None for graph in tried),
        sum(graph.num_rows for graph in tried),
        sum(record.wall_s for record in records),
    )


def _brief(reason: str) -> str:
    """Return the first line of a reason with each number replaced by N."""
    line = next((line for line in reason.splitlines() if line.strip()), "")
    return re.sub(r"\d+", "N", line)[:MAX_BRIEF_CHARACTERS]
