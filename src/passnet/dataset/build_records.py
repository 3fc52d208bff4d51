"""What came of mining the captured graphs of a dataset: a record of each, and all in numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from passnet.jobs.run_folder import last_records

RECORDS_FILE = "graphs.jsonl"
TOP_REASONS = 10


@dataclass(frozen=True, slots=True)
class MinedRecord:
    """What came of mining one graph: how many ranges were cut out by kind, and were refused, with
    the reasons; how many of them there are in other dtypes, and what kept the graph from a dtype;
    `error` where the graph as a whole failed.
    """

    graph: str
    num_ops: int
    found: dict[str, int]
    refused: dict[str, int]
    reasons: dict[str, int]
    variants: dict[str, int] = field(default_factory=dict)
    unvaried: dict[str, str] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MinedCounts:
    """What came of mining all graphs, of which `num_failed` gave nothing.

    `found` and `refused` are ranges by kind, `reasons` the most frequent ones for a refusal.
    `varied` and `unvaried` are graphs by dtype: those made in it, and those that could not be.
    """

    num_graphs: int
    num_ops: int
    num_failed: int
    found: dict[str, int]
    refused: dict[str, int]
    reasons: dict[str, int]
    varied: dict[str, int]
    unvaried: dict[str, int]


def read_mined_records(out: Path) -> dict[str, MinedRecord]:
    """The records of a build by graph; a torn last line is left out."""
    return last_records(out / RECORDS_FILE, MinedRecord, lambda record: record.graph)


def count_mined(records: Iterable[MinedRecord]) -> MinedCounts | None:
    """Records in numbers; None without any, as in a dataset that was not mined here."""
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
