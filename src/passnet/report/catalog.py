"""What a run over the catalog gave: tables by library, of failures, and of domains."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from passnet.extract.domain import DOMAINS
from passnet.extract.record import NetRecord

PUBLISHED_DOMAINS = {"nlp": 63.6, "cv": 27.0, "multimodal": 1.7, "audio": 1.2, "other": 6.5}
"""Per cent of the nets of the published dataset (PassNet paper, Section 3)."""

MAX_ERROR_CHARACTERS = 160


@dataclass(frozen=True)
class LibraryRow:
    """One library's nets: how many were tried and captured, their distinct graphs with and without
    shapes and literals, ops in distinct graphs, medians of time and memory, and what the checks
    gave.
    """

    library: str
    tried: int
    captured: int
    graphs: int
    structures: int
    ops: int
    checked: int
    wrong: int
    real_weights: int
    trace_s: float | None
    wall_s: float | None
    peak_mib: float | None


def library_rows(records: Sequence[NetRecord]) -> list[LibraryRow]:
    """A row for each library, and one over all, named "all"."""
    names = sorted({record.library for record in records})
    groups = [(name, [item for item in records if item.library == name]) for name in names]
    return [_row(name, items) for name, items in [*groups, ("all", list(records))]]


def _row(name: str, records: Sequence[NetRecord]) -> LibraryRow:
    captured = [item for item in records if item.status == "captured"]
    graphs = {note.full: note for item in captured for note in item.graphs if note.is_kept}
    checks = [item.constraints for item in captured if item.constraints]
    return LibraryRow(
        library=name,
        tried=len(records),
        captured=len(captured),
        graphs=len(graphs),
        structures=len({note.structure for note in graphs.values()}),
        ops=sum(note.num_ops for note in graphs.values()),
        checked=sum(item.runnable is not None for item in checks),
        wrong=sum(item.runnable is False for item in checks),
        real_weights=sum(item.mode == "real" for item in captured),
        trace_s=_median([item.trace_s for item in captured]),
        wall_s=_median([item.wall_s for item in records]),
        peak_mib=max((item.peak_mib or 0.0 for item in records), default=None),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def summary(records: Sequence[NetRecord]) -> str:
    """The run as a page of Markdown."""
    lines = ["# Captured nets", "", *_library_table(records)]
    lines += ["", "## Domains", "", *_domain_table(records)]
    lines += ["", "## Failures by cause", "", *_failure_table(records)]
    return "\n".join(lines) + "\n"


def _library_table(records: Sequence[NetRecord]) -> list[str]:
    lines = [
        "| library | tried | captured | | graphs | structures | ops | checked | wrong | "
        "real weights | trace s | wall s | most MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in library_rows(records):
        share = 100 * row.captured / row.tried if row.tried else 0.0
        lines.append(
            f"| {row.library} | {row.tried} | {row.captured} | {share:.1f} % | {row.graphs} | "
            f"{row.structures} | {row.ops} | {row.checked} | {row.wrong} | {row.real_weights} | "
            f"{_number(row.trace_s, 1)} | {_number(row.wall_s, 1)} | {_number(row.peak_mib, 0)} |"
        )
    return lines


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _domain_table(records: Sequence[NetRecord]) -> list[str]:
    counts = Counter(item.domain for item in records if item.status == "captured")
    total = sum(counts.values()) or 1
    lines = ["| domain | nets | | published |", "|---|--:|--:|--:|"]
    for name in DOMAINS:
        share = 100 * counts[name] / total
        lines.append(f"| {name} | {counts[name]} | {share:.1f} % | {PUBLISHED_DOMAINS[name]} % |")
    return lines


def _failure_table(records: Sequence[NetRecord]) -> list[str]:
    failed = [item for item in records if item.status == "failed"]
    lines = ["| library | cause | nets | for example |", "|---|---|--:|---|"]
    counts = Counter((item.library, item.cause) for item in failed)
    for (name, cause), number in sorted(counts.items(), key=lambda pair: (pair[0][0], -pair[1])):
        first = next(item for item in failed if (item.library, item.cause) == (name, cause))
        said = " ".join((first.error or "").split()).split(" from user code:")[0]
        error = said[:MAX_ERROR_CHARACTERS].replace("|", "/")
        entry = first.entry.split("/", 1)[-1]
        lines.append(f"| {name} | {cause} | {number} | {entry}: {error} |")
    return lines
