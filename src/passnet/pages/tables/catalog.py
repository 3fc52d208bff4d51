"""The results of a run over the catalog: tables by library, of domains, and of failures."""

import statistics
from collections import Counter
from collections.abc import Sequence

from passnet.data.capture.record import DOMAINS, NetRecord

PUBLISHED_DOMAINS = {"nlp": 63.6, "cv": 27.0, "multimodal": 1.7, "audio": 1.2, "other": 6.5}
"""Per cent of the nets of the published dataset (PassNet paper, Section 3)."""

MAX_ERROR_CHARACTERS = 160


def summary(records: Sequence[NetRecord]) -> str:
    """Return the run as a page of Markdown."""
    lines = ["# Captured nets", "", *_library_table(records)]
    lines += ["", "## Domains", "", *_domain_table(records)]
    lines += ["", "## Failures by cause", "", *_failure_table(records)]
    return "\n".join(lines) + "\n"


def _library_table(records: Sequence[NetRecord]) -> list[str]:
    """Return a line for each library, and one over all.

    Graphs and structures are distinct, with and without shapes and literals; seconds are medians.
    """
    lines = [
        "| library | tried | captured | | graphs | structures | ops | checked | wrong | "
        "real weights | trace s | wall s | most MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    names = sorted({record.library for record in records})
    groups = [(name, [record for record in records if record.library == name]) for name in names]
    for name, tried in [*groups, ("all", list(records))]:
        captured = [record for record in tried if record.status == "captured"]
        graphs = {note.full: note for record in captured for note in record.graphs if note.is_kept}
        checks = [record.constraints.runnable for record in captured if record.constraints]
        cells = (
            name,
            len(tried),
            len(captured),
            f"{100 * len(captured) / len(tried) if tried else 0.0:.1f} %",
            len(graphs),
            len({note.structure for note in graphs.values()}),
            sum(note.num_ops for note in graphs.values()),
            sum(runnable is not None for runnable in checks),
            sum(runnable is False for runnable in checks),
            sum(record.mode == "real" for record in captured),
            _median([record.trace_s for record in captured]),
            _median([record.wall_s for record in tried]),
            f"{max(record.peak_mib or 0.0 for record in tried):.0f}" if tried else "-",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _median(seconds: Sequence[float | None]) -> str:
    measured = [number for number in seconds if number is not None]
    return f"{statistics.median(measured):.1f}" if measured else "-"


def _domain_table(records: Sequence[NetRecord]) -> list[str]:
    counts = Counter(record.domain for record in records if record.status == "captured")
    total = sum(counts.values()) or 1
    lines = ["| domain | nets | | published |", "|---|--:|--:|--:|"]
    for name in DOMAINS:
        share = 100 * counts[name] / total
        lines.append(f"| {name} | {counts[name]} | {share:.1f} % | {PUBLISHED_DOMAINS[name]} % |")
    return lines


def _failure_table(records: Sequence[NetRecord]) -> list[str]:
    failed = [record for record in records if record.status == "failed"]
    counts = Counter((record.library, record.cause) for record in failed)
    first = {(record.library, record.cause): record for record in reversed(failed)}
    lines = ["| library | cause | nets | for example |", "|---|---|--:|---|"]
    for key, number in sorted(counts.items(), key=lambda pair: (pair[0][0], -pair[1])):
        error = " ".join((first[key].error or "").split()).split(" from user code:")[0]
        error = error[:MAX_ERROR_CHARACTERS].replace("|", "/")
        entry = first[key].entry.split("/", 1)[-1]
        lines.append(f"| {key[0]} | {key[1]} | {number} | {entry}: {error} |")
    return lines
