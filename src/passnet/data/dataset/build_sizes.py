"""The rows of a build at other sizes: every net of its graphs, captured again at a few sizes."""

import hashlib
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

from passnet.core.jobs.process import JobLimits
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import RunPlan
from passnet.data.capture.store import GraphRow, GraphSource
from passnet.data.dataset.build_records import SizedRecord
from passnet.data.dataset.progress import ProgressStep
from passnet.data.dataset.resize import OriginalGraph, OriginalSubgraph, SizeJob, resize_isolated
from passnet.data.dataset.store import SUBGRAPHS

SIZES_FOLDER = "sizes"
NETS_A_TURN = 8
"""Nets of a library that are made one after the other before those of the next."""

MAX_SIZES = 9
"""The published shapes of a net; those that have one of them get one less."""


def net_of(row: GraphRow) -> GraphSource | None:
    """Where a graph is captured again: the first net whose forward pass it is; None without."""
    return next((source for source in row.sources if source.part == "forward"), None)


def sized_part(out: Path, key: str) -> Path:
    """Where the rows of a net at one size are, by the key of its record."""
    return out / SIZES_FOLDER / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.parquet"


def add_sizes(
    run: RunFolder[Any, SizedRecord, str],
    rows: Iterable[GraphRow],
    num_sizes: int,
    part_of: Callable[[str], Path],
    limits: JobLimits,
    plan: RunPlan,
    announce: Callable[[str, int], ProgressStep],
) -> None:
    """Make the rows of the nets of some captured graphs, which are mined, at up to `num_sizes`
    sizes each; what the folder of the run has of them stays.

    `part_of` gives the file of rows of a captured graph by its full fingerprint.
    """
    records = run.records()
    done = {key for key, record in records.items() if not _lacks_library(record)}
    jobs = size_jobs(rows, num_sizes, part_of, done)
    step = announce("making other sizes", len(jobs))
    work = partial(resize_isolated, jobs=jobs, limits=limits)
    outcomes = plan.executor(list(jobs), work, plan.num_workers)
    for record in run.keep(outcomes, len(records), lambda record: sized_part(run.out, record.key)):
        step(f"{record.entry} {record.size}")


def _lacks_library(record: SizedRecord) -> bool:
    return any(graph.cause == "no_library" for graph in record.graphs)


def size_jobs(
    rows: Iterable[GraphRow], num_sizes: int, part_of: Callable[[str], Path], done: Collection[str]
) -> dict[str, SizeJob]:
    """The jobs that are not done yet by key. Libraries take turns with a few nets each, in a drawn
    order, so that what is done stands for all at any time, and a library stays imported.
    """
    nets: dict[tuple[str, bool], list[tuple[GraphRow, int]]] = {}
    for row in sorted(rows, key=attrgetter("full")):
        if source := net_of(row):
            nets.setdefault((source.entry, source.train), []).append((row, source.number))
    jobs: dict[str, SizeJob] = {}
    for entry, train in in_turns(nets):
        numbered = nets[entry, train]
        empty = [SizeJob(entry, train, index, ()) for index in range(num_sizes)]
        missing = [job for job in empty if job.key not in done]
        if missing:
            graphs = tuple(_captured(row, number, part_of(row.full)) for row, number in numbered)
            with_rows = tuple(graph for graph in graphs if graph.subgraphs)
            for job in missing if with_rows else ():
                jobs[job.key] = SizeJob(entry, train, job.index, with_rows)
    return jobs


def in_turns(nets: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Nets in blocks of a library, and libraries by turns."""
    libraries: dict[str, list[tuple[str, bool]]] = {}
    for net in sorted(nets, key=lambda net: hashlib.sha256(repr(net).encode()).digest()):
        libraries.setdefault(net[0].partition("/")[0], []).append(net)
    blocks = [
        [library[start : start + NETS_A_TURN] for start in range(0, len(library), NETS_A_TURN)]
        for _, library in sorted(libraries.items())
    ]
    return [net for turn in zip_longest(*blocks, fillvalue=()) for block in turn for net in block]


def _captured(row: GraphRow, number: int, part: Path) -> OriginalGraph:
    """A graph with the subgraphs that were mined of it as it was captured."""
    mined = SUBGRAPHS.read(part) if part.exists() else ()
    subgraphs = tuple(
        OriginalSubgraph(
            found.full,
            found.structure,
            found.kinds,
            tuple((place.start, place.stop) for place in found.places),
        )
        for found in mined
        if not found.variant
    )
    return OriginalGraph(row.full, row.structure, number, row.domain, subgraphs)
