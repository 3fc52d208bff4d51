"""Subgraphs at other sizes: nets are captured again, compared, and cut at the same ops."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from passnet.core.jobs.process import JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import decode, encode
from passnet.core.terminal.progress import ProgressStep
from passnet.data.capture.recapture import axis_sizes, fresh_net, recapture_net
from passnet.data.capture.record import Domain, library_of
from passnet.data.capture.run import collect_rarely, library_job
from passnet.data.capture.store import GraphRow, GraphSource, write_result
from passnet.data.dataset.build_records import (
    MinedRecord,
    SizedGraph,
    SizedRecord,
    SizeFailure,
)
from passnet.data.dataset.store import SUBGRAPHS, Mined, SubgraphRow, mined_as, mined_rows
from passnet.data.dataset.variant_sizes import chosen_sizes, name_of
from passnet.data.dataset.variants import MAX_BYTES, MAX_REASON_CHARACTERS
from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import CaptureError, CutError, GraphError, InputError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph
from passnet.graph.text.meta import DTYPE_BYTES

R = TypeVar("R", MinedRecord, SizedRecord)


@dataclass(frozen=True, slots=True)
class OriginalSubgraph:
    """A mined subgraph, and the ops [start, stop) of its places."""

    full: str
    structure: str
    kinds: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class OriginalGraph:
    """A mined graph, and its number among the graphs of its net."""

    full: str
    structure: str
    number: int
    domain: Domain
    subgraphs: tuple[OriginalSubgraph, ...]


@dataclass(frozen=True, slots=True)
class SizeJob:
    """The graphs of a net to make at one size: number `index` among its `chosen_sizes`."""

    entry: str
    train: bool
    index: int
    graphs: tuple[OriginalGraph, ...]

    @property
    def key(self) -> str:
        """The name of the job in a build."""
        return f"{self.entry}{' in training' if self.train else ''} #{self.index}"


def resize_isolated(worker: JobRunner, job: SizeJob, limits: JobLimits) -> JobOutcome[SizedRecord]:
    """Make the rows of a net at one size in its own process."""
    function = "passnet.data.dataset.resize:resize_to"
    result = worker.run(library_job(function, encode(job).decode(), limits, job.entry))
    cause: SizeFailure = "timeout" if result.end.timed_out else "crash"
    failed = _failed(job, cause, result.failure[-MAX_REASON_CHARACTERS:])
    outcome = result.outcome(SizedRecord) or JobOutcome(failed)
    return replace(outcome, record=replace(outcome.record, wall_s=result.end.wall_s))


def resize_to(payload: str, folder: Path) -> None:
    """Make the rows in the process, and write record and rows to a folder."""
    collect_rarely()
    write_result(folder, *resized(decode(payload, SizeJob)), SUBGRAPHS)


def resized(job: SizeJob, most_bytes: int = MAX_BYTES) -> tuple[SizedRecord, list[SubgraphRow]]:
    """Return the subgraphs of a net's graphs at one size, without unchanged ones."""
    start = time.perf_counter()
    axes: dict[str, int] = {}
    name = ""
    try:
        net, weights = fresh_net(job.entry, job.train)
        axes = axis_sizes(net)
        sizes = chosen_sizes(axes)
        if job.index >= len(sizes):
            return replace(_failed(job, "no_size", ""), axes=axes), []
        name = name_of(sizes[job.index])
        captured = recapture_net(net, weights, sizes[job.index]).graphs
    except (CaptureError, InputError) as error:
        is_missing = isinstance(error.__cause__, ImportError)
        cause = "no_library" if is_missing else "refused_by_net"
        failed = _failed(job, cause, str(error)[:MAX_REASON_CHARACTERS])
        return replace(failed, axes=axes, size=name), []
    graphs: list[SizedGraph] = []
    rows: list[SubgraphRow] = []
    for original in job.graphs:
        try:
            graph = captured[original.number] if original.number < len(captured) else None
            sized, mined = _cut_alike(original, graph, most_bytes)
        except GraphError as error:
            reason = str(error)[:MAX_REASON_CHARACTERS]
            sized, mined = SizedGraph(original.full, cause="refused_by_op", reason=reason), {}
        graphs.append(sized)
        rows += mined_rows(mined, name, original.full, original.domain, [job.entry])
    wall_s = time.perf_counter() - start
    return SizedRecord(job.key, job.entry, axes, name, tuple(graphs), wall_s), rows


def _cut_alike(
    original: OriginalGraph, graph: Graph | None, most_bytes: int
) -> tuple[SizedGraph, Mined]:
    """Cut the ranges of a captured graph out of its version at another size."""
    mined: Mined = {}
    if graph is None or fingerprints(graph).structure != original.structure:
        text = "other ops or another data flow than the original"
        return SizedGraph(original.full, cause="other_graph", reason=text), mined
    single = Graph(single_assignment(graph.program), graph.tensors)
    specs = inferred_specs(single)
    sizes = {
        name: spec.num_elements * DTYPE_BYTES.get(spec.dtype, 1) for name, spec in specs.items()
    }
    num_bytes = sum(sizes[spec.name] for spec in graph.tensors) + max(sizes.values(), default=0)
    if num_bytes > most_bytes:
        text = f"{num_bytes} bytes, above {most_bytes}"
        return SizedGraph(original.full, cause="too_large", reason=text), mined
    parent = parent_of(single.program, specs)
    num_lost = 0
    unchanged = {subgraph.full for subgraph in original.subgraphs}
    for subgraph in original.subgraphs:
        for start, stop in subgraph.ranges:
            try:
                cut = cut_range(parent, start, stop)
            except CutError:
                num_lost += 1  # a value that crosses the cut has no size that follows
                continue
            prints = fingerprints(cut)
            if prints.structure != subgraph.structure:
                num_lost += 1
            elif prints.full not in unchanged:
                variant = mined_as(cut, mined)
                variant.ranges[start, stop].update(subgraph.kinds)
                variant.original = min(variant.original or subgraph.full, subgraph.full)
    return SizedGraph(original.full, len(mined), num_lost), mined


def _failed(job: SizeJob, cause: SizeFailure, reason: str) -> SizedRecord:
    graphs = tuple(SizedGraph(graph.full, cause=cause, reason=reason) for graph in job.graphs)
    return SizedRecord(job.key, job.entry, {}, "", graphs)


PARTS_FOLDER = "parts"
SIZES_FOLDER = "sizes"
NETS_A_TURN = 8
"""Nets of a library that are made before those of the next."""


def net_of(row: GraphRow) -> GraphSource | None:
    """Return the source for capturing a graph again: the first forward pass; None without."""
    return next((source for source in row.sources if source.part == "forward"), None)


def mined_part(out: Path, graph: str) -> Path:
    """Return the file of the rows mined from a graph, by its full fingerprint."""
    return out / PARTS_FOLDER / f"{graph[:32]}.parquet"


def sized_part(out: Path, key: str) -> Path:
    """Return the file of the rows of a net at one size, by the key of its record."""
    return out / SIZES_FOLDER / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.parquet"


def whole_records(
    run: RunFolder[Any, R, str], part_of: Callable[[Path, str], Path]
) -> dict[str, R]:
    """Return the records of a run by name, without those whose rows are missing."""
    return {
        name: record
        for name, record in run.records().items()
        if not record.has_rows or part_of(run.out, name).is_file()
    }


def add_sizes(
    run: RunFolder[Any, SizedRecord, str],
    rows: Iterable[GraphRow],
    num_sizes: int,
    limits: JobLimits,
    plan: RunPlan,
    announce: Callable[[str, int], ProgressStep],
) -> None:
    """Make the missing rows of the nets of mined graphs at up to `num_sizes` sizes each."""
    records = whole_records(run, sized_part)
    finished = {
        key: {graph.graph for graph in record.graphs if graph.cause != "no_library"}
        for key, record in records.items()
    }
    jobs = size_jobs(rows, num_sizes, run.out, finished)
    step = announce("making other sizes", len(jobs))
    work = partial(resize_isolated, limits=limits)
    outcomes = plan.executor(list(jobs.values()), work, plan.num_workers)
    for record in run.keep(outcomes, len(records), lambda record: sized_part(run.out, record.key)):
        step(f"{record.entry} {record.size}")


def size_jobs(
    rows: Iterable[GraphRow], num_sizes: int, out: Path, finished: Mapping[str, Set[str]]
) -> dict[str, SizeJob]:
    """Return the unfinished jobs by key; libraries take turns, so a part is representative.

    A job is unfinished if it has a graph that is not among the `finished` ones of its key.
    """
    nets: dict[tuple[str, bool], list[tuple[GraphRow, int]]] = defaultdict(list)
    for row in sorted(rows, key=attrgetter("full")):
        if source := net_of(row):
            nets[source.entry, source.train].append((row, source.number))
    jobs: dict[str, SizeJob] = {}
    for entry, train in in_turns(nets):
        numbered = nets[entry, train]
        empty = [SizeJob(entry, train, index, ()) for index in range(num_sizes)]
        done = [finished.get(job.key, frozenset()) for job in empty]
        if all({row.full for row, _ in numbered} <= names for names in done):
            continue
        graphs = [_captured(row, number, mined_part(out, row.full)) for row, number in numbered]
        with_rows = tuple(graph for graph in graphs if graph.subgraphs)
        jobs |= {
            job.key: replace(job, graphs=with_rows)
            for job, names in zip(empty, done, strict=True)
            if not {graph.full for graph in with_rows} <= names
        }
    return jobs


def in_turns(nets: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return nets in blocks of one library, with libraries taking turns."""
    libraries: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for net in sorted(nets, key=lambda net: hashlib.sha256(repr(net).encode()).digest()):
        libraries[library_of(net[0])].append(net)
    blocks = [
        [library[start : start + NETS_A_TURN] for start in range(0, len(library), NETS_A_TURN)]
        for _, library in sorted(libraries.items())
    ]
    return [net for turn in zip_longest(*blocks, fillvalue=()) for block in turn for net in block]


def _captured(row: GraphRow, number: int, part: Path) -> OriginalGraph:
    """Return a graph with the subgraphs that were mined from it as captured."""
    mined = SUBGRAPHS.read(part) if part.exists() else ()
    subgraphs = []
    for subgraph in mined:
        if not subgraph.variant:
            ops = tuple((occurrence.start, occurrence.stop) for occurrence in subgraph.places)
            subgraphs.append(
                OriginalSubgraph(subgraph.full, subgraph.structure, subgraph.kinds, ops)
            )
    return OriginalGraph(row.full, row.structure, number, row.domain, tuple(subgraphs))
