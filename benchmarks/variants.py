"""How often captured graphs have variants in other dtypes and at other sizes, and why not.

Run it with `python -m benchmarks.variants [NUM_GRAPHS [NUM_NETS [RECORDS]]]`. Graphs are a
stratified part of `captures/`, each worked on in a process of its own, as many at a time as there
are cores. What is done is kept in the file RECORDS and not done again; a run that is interrupted
prints the tables of what there is.
"""

from __future__ import annotations

import logging
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from rich.console import Console

from benchmarks.cutting import graph_of
from passnet.core.jobs.executors import run_local
from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import LineWriter, decode, encode, write_json
from passnet.core.terminal.progress import progress
from passnet.data.capture.sampling import stratified_sample
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.pages.tables.tables import Table, print_table

TEXT_BYTES = 50_000
"""Bytes of text and arguments for each graph of the part, more than they have in the mean."""

MAX_OPS = 300
"""Graphs of up to so many ops are taken; nets of more are traced for minutes."""

LIMITS = JobLimits(300.0, 8192)
OTHER = ("float16", "bfloat16")
ENDED = ("timeout", "crash")
"""What came of a process that left no record; it is a failure in every dtype."""


Way: TypeAlias = Literal["graph alone", "with its net", "other sizes"]
"""Dtypes of a graph by itself; dtypes with the literals of its net; sizes, in its own dtype."""

OF_DTYPES: tuple[Way, ...] = ("graph alone", "with its net")


@dataclass(frozen=True)
class VariantJob:
    """What a process is to measure."""

    row: GraphRow
    way: Way


@dataclass(frozen=True)
class VariantOutcome:
    """One variant: its name, "run", "checked" or the cause of failure, the share of floating-point
    values that are of its dtype, and how long it took.
    """

    entry: str
    way: Way
    name: str
    status: str
    reason: str = ""
    share: float | None = None
    wall_s: float = 0.0


@dataclass(frozen=True)
class Measured:
    """What came of a job."""

    key: str
    tried: list[VariantOutcome]


def measure(job: VariantJob) -> list[VariantOutcome]:
    """The variants of one graph, in this process."""
    from passnet.data.dataset.variants import dtype_variants, net_variants

    logging.disable(logging.ERROR)
    row = job.row
    source = row.sources[0]
    graph = graph_of(row)
    graphs = {source.number: graph}
    variants = {
        "graph alone": lambda: dtype_variants(graph),
        "with its net": lambda: net_variants(source.entry, graphs, source.train, shapes=False),
        "other sizes": lambda: net_variants(source.entry, graphs, source.train, dtypes=()),
    }[job.way]()
    return _outcomes(source.entry, job.way, variants)


def _outcomes(entry: str, way: Way, variants: Iterable[object]) -> list[VariantOutcome]:
    from passnet.data.dataset.variants import Failure, Variant

    outcomes = []
    start = time.perf_counter()
    for variant in variants:
        assert isinstance(variant, (Variant, Failure)), "these are what variants are"
        wall_s = time.perf_counter() - start
        if isinstance(variant, Failure):
            outcomes.append(
                VariantOutcome(
                    entry, way, variant.name, variant.cause, variant.reason, None, wall_s
                )
            )
        else:
            status = "run" if variant.was_run else "checked"
            outcomes.append(
                VariantOutcome(entry, way, variant.name, status, "", _share(variant), wall_s)
            )
        start = time.perf_counter()
    return outcomes


def _share(variant: object) -> float | None:
    """The share of the values which ops make, among floats, that are of the variant's dtype."""
    from passnet.data.dataset.variants import Variant
    from passnet.graph.values.fake import infer_shapes

    assert isinstance(variant, Variant), "only these have a graph"
    if variant.name not in OTHER:
        return None
    kinds = [
        value.dtype for values in infer_shapes(variant.graph) for value in values if value.dtype
    ]
    floats = [kind for kind in kinds if "float" in kind]
    return sum(kind == variant.name for kind in floats) / len(floats) if floats else None


def measure_to(payload: str, folder: Path) -> None:
    """What runs in the process."""
    write_json(folder / RECORD_FILE, measure(decode(payload, VariantJob)))


def measure_isolated(worker: JobRunner, key: str, jobs: dict[str, VariantJob]) -> Measured:
    """What came of a job in a process of its own; one that ends is a failure of its graph."""
    job = jobs[key]
    entry = job.row.sources[0].entry
    prepare = "passnet.data.capture.entry_capture:preload_library"
    payload = encode(job).decode()
    result = worker.run(
        Job("benchmarks.variants:measure_to", payload, LIMITS, prepare, _library(job))
    )
    if outcome := result.outcome(list[VariantOutcome]):
        return Measured(key, outcome.record)
    why = ENDED[0] if result.end.timed_out else ENDED[1]
    return Measured(key, [VariantOutcome(entry, job.way, "", why, result.log[-200:])])


def _library(job: VariantJob) -> str:
    """The library that a process needs; one that has it is used again."""
    return "" if job.way == "graph alone" else job.row.sources[0].entry.split("/")[0]


def dtype_table(tried: list[VariantOutcome]) -> Table:
    """A line for each way and dtype."""
    heads = ("way", "dtype", "graphs", "made %", "run", "by shapes", "share of values %", "failed")
    table = Table(
        "variants in other dtypes",
        heads,
        note="run: on the CPU, with finite outputs; by shapes: too large for that. share: median "
        "of the share of floating-point values that are of the dtype.",
    )
    for way in OF_DTYPES:
        for dtype in ("", *OTHER):
            outcomes = [
                outcome
                for outcome in tried
                if outcome.way == way and (outcome.name == dtype or outcome.status in ENDED)
            ]
            shares = [outcome.share for outcome in outcomes if outcome.share is not None]
            share = f"{100 * statistics.median(shares):.0f}" if shares else "–"
            table.rows.append((way, dtype or "as captured", *_counts(outcomes, share)))
    return table


def shape_table(tried: list[VariantOutcome]) -> Table:
    """A line for each set of axes."""
    heads = ("axes", "nets", "variants", "made %", "run", "by shapes", "median s", "failed")
    table = Table("variants at other sizes", heads)
    groups: dict[str, list[VariantOutcome]] = {}
    for outcome in tried:
        if outcome.way == "other sizes":
            axes = ", ".join(part.split("=")[0] for part in outcome.name.split(","))
            groups.setdefault(axes, []).append(outcome)
    for axes, outcomes in sorted(groups.items()):
        median_s = statistics.median(outcome.wall_s for outcome in outcomes)
        counts = _counts(outcomes, f"{median_s:.1f}")
        nets = len({outcome.entry for outcome in outcomes})
        table.rows.append((axes or "as captured", str(nets), *counts))
    return table


def _counts(outcomes: list[VariantOutcome], last: str) -> tuple[str, ...]:
    statuses = Counter(outcome.status for outcome in outcomes)
    num_made = statuses["run"] + statuses["checked"]
    causes = {name: count for name, count in statuses.items() if name not in ("run", "checked")}
    failed = ", ".join(f"{count} {name}" for name, count in sorted(causes.items())) or "–"
    share = f"{100 * num_made / len(outcomes):.0f}" if outcomes else "–"
    return (str(len(outcomes)), share, str(statuses["run"]), str(statuses["checked"]), last, failed)


def sample(folder: Path, size: int) -> list[GraphRow]:
    """So many graphs of a set, or fewer where strata are used up, in an order without a meaning."""
    rows = [
        row
        for file in read_set(folder)[1]
        for row in GRAPHS.read(file)
        if row.sources[0].part == "forward" and len(row.op_sequence) <= MAX_OPS
    ]
    return stratified_sample(rows, size * TEXT_BYTES)[:size]


def main(arguments: list[str]) -> None:
    """Measure what is not measured yet, and print both tables and the reasons of failures."""
    num_graphs, num_nets = (int(word) for word in (*arguments, "100", "25")[:2])
    records = Path(arguments[2] if len(arguments) > 2 else "runs/variants.jsonl")
    part = sample(Path("captures"), max(num_graphs, num_nets))
    rows_and_ways = [(row, way) for way in OF_DTYPES for row in part[:num_graphs]]
    rows_and_ways += [(row, "other sizes") for row in part[:num_nets]]
    jobs = {f"{way} {row.full}": VariantJob(row, way) for row, way in rows_and_ways}
    records.parent.mkdir(parents=True, exist_ok=True)
    measured = last_records(records, Measured, lambda record: record.key)
    missing = sorted(
        (key for key in jobs if key not in measured), key=lambda key: _library(jobs[key])
    )
    num_workers = len(os.sched_getaffinity(0))
    finished = run_local(missing, partial(measure_isolated, jobs=jobs), num_workers)
    with (
        suppress(KeyboardInterrupt),
        LineWriter(records) as writer,
        progress("variants", len(missing)) as step,
    ):
        for record in finished:
            writer.write(record)
            measured[record.key] = record
            step(record.tried[0].entry if record.tried else record.key)
    tried = [outcome for key in jobs if key in measured for outcome in measured[key].tried]
    for table in (dtype_table(tried), shape_table(tried)):
        print_table(Console(), table)
    for outcome in tried:
        if outcome.status not in ("run", "checked"):
            variant = f"{outcome.entry} {outcome.way} {outcome.name}"
            print(f"{variant}: {outcome.status}: {outcome.reason[:150]}")


if __name__ == "__main__":
    main(sys.argv[1:])
