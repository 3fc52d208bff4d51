"""Builds of datasets: fold the corpus, mine every graph, capture nets at other sizes, merge."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from passnet.core.jobs.process import Job, JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.differences import first_difference
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode
from passnet.core.terminal.progress import ProgressStep, no_progress
from passnet.data.capture.run import collect_rarely
from passnet.data.capture.store import GraphRow, merged_rows, read_set, write_result
from passnet.data.dataset import store
from passnet.data.dataset.build_records import RECORDS_FILE, SIZES_FILE, MinedRecord, SizedRecord
from passnet.data.dataset.resize import add_sizes, mined_part, net_of, sized_part, whole_records
from passnet.data.dataset.store import DatasetManifest, Mined, SubgraphRow, mined_as
from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.data.mine.dtypes import DTYPES, in_dtype
from passnet.data.mine.folding import COVERING, FoldingPlan, alphabet, fold, ranges
from passnet.data.mine.subgraphs import PLANNED_OPS, SUBGRAPH_KINDS, RangeRefusal, SubgraphKind
from passnet.data.mine.subgraphs import subgraphs as subgraphs_of
from passnet.errors import CutError, GraphError, InputError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph, TensorSpec, main_float
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.parse import parse_program
from passnet.graph.values.cost import missing_kernels

R = TypeVar("R", MinedRecord, SizedRecord)

RUN_FILE = "build.json"
MAX_REASONS = 20
MAX_ERROR_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """The contents of a dataset, the limits for a graph, and the number of other sizes a net."""

    kinds: tuple[SubgraphKind, ...] = SUBGRAPH_KINDS
    dtypes: tuple[str, ...] = DTYPES
    folding: FoldingPlan = COVERING
    limits: JobLimits = JobLimits(300.0, 8192)
    num_sizes: int = 0


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The inputs of a build; it can be resumed with the same inputs, or with more sizes.

    `shards` are the SHA-256 of the rows of its graphs.
    """

    schema_version: int
    settings: BuildSettings
    shards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MiningJob:
    """The input of a mining process: a graph's row, and its ranges that repeat in the corpus."""

    row: GraphRow
    classical: tuple[tuple[int, int], ...]
    kinds: tuple[SubgraphKind, ...]
    dtypes: tuple[str, ...] = ()


def build_dataset(
    folders: Sequence[Path],
    out: Path,
    settings: BuildSettings,
    plan: RunPlan = DEFAULT_PLAN,
    announce: Callable[[str, int], ProgressStep] = no_progress,
    resized: Collection[str] | None = None,
) -> tuple[list[MinedRecord], list[SizedRecord], DatasetManifest]:
    """Build a dataset of the subgraphs of sets of captured graphs, which are merged first.

    The parts of `plan` are of nets; its workers mine a graph or resize a net at a time. `announce`
    is called with the title and total of each phase, and returns the step to call after each.
    `resized` are the captured graphs, by full fingerprint, to make at other sizes, with those that
    the folder has at other sizes already; all without it.
    Returns the records of all graphs and of all nets at other sizes, and the dataset.

    Raises:
        InputError: there are no graphs; `out` holds a build and `plan.resume` is off, or another
            one; or one of `plan.parts` is another one.
    """
    sets = [read_set(folder) for folder in folders]
    rows = {row.full: row for row in merged_rows(file for _, files in sets for file in files)}
    if not rows:
        raise InputError(f"{folders[0]}: holds no graph to mine")
    digests = (hashlib.sha256(encode(row)).hexdigest() for row in rows.values())
    info = BuildInfo(SCHEMA_VERSION, settings, tuple(sorted(digests)))
    for part in plan.parts:
        _same_build(part, _mined_run(part).read_info(), info)
    versions: dict[str, set[str]] = defaultdict(set)
    mined, sized = _mined_run(out), _sized_run(out)
    with mined.begin(info, plan.resume, partial(_same_build, out)):
        for part in plan.parts:
            _take_over(mined, _mined_run(part), mined_part)
            _take_over(sized, _sized_run(part), sized_part)
        own_rows = {
            name: row
            for name, row in sorted(rows.items())
            if plan.shard.has((net_of(row) or row.sources[0]).entry)
        }
        _mine_missing(mined, rows, own_rows, settings, plan, announce)
        if settings.num_sizes:
            to_resize = [*own_rows.values()]
            if resized is not None:  # a net's graphs are made together, also those made before
                before = sized.records().values()
                names = {*resized, *(graph.graph for record in before for graph in record.graphs)}
                to_resize = [row for row in to_resize if row.full in names]
            add_sizes(sized, to_resize, settings.num_sizes, settings.limits, plan, announce)
        records, sized_records = mined.records(), sized.records()
        parts = [mined_part(out, name) for name, record in records.items() if record.has_rows]
        parts += [sized_part(out, key) for key, record in sized_records.items() if record.has_rows]
        for manifest, _ in sets:
            for package, numbers in manifest.versions.items():
                versions[package].update(numbers)
        merged = store.merge_subgraphs(parts, out, versions)
    return (
        [records[name] for name in sorted(records)],
        [sized_records[key] for key in sorted(sized_records)],
        merged,
    )


def _mine_missing(
    run: RunFolder[BuildInfo, MinedRecord, str],
    rows: dict[str, GraphRow],
    names: Collection[str],
    settings: BuildSettings,
    plan: RunPlan,
    announce: Callable[[str, int], ProgressStep],
) -> None:
    """Mine the named graphs that a run lacks; the corpus, `rows`, is folded as a whole."""
    records = whole_records(run, mined_part)
    missing = [name for name in names if name not in records]
    step = announce("mining graphs", len(missing))
    jobs = _jobs(rows, settings) if missing else {}
    work = partial(mine_isolated, limits=settings.limits)
    outcomes = plan.executor([jobs[name] for name in missing], work, plan.num_workers)
    for record in run.keep(outcomes, len(records), lambda done: mined_part(run.out, done.graph)):
        step(record.graph[:12])


def _mined_run(out: Path) -> RunFolder[BuildInfo, MinedRecord, str]:
    graph = attrgetter("graph")
    return RunFolder(out, RUN_FILE, BuildInfo, RECORDS_FILE, MinedRecord, graph, "mined graphs")


def _sized_run(out: Path) -> RunFolder[BuildInfo, SizedRecord, str]:
    key = attrgetter("key")
    return RunFolder(out, RUN_FILE, BuildInfo, SIZES_FILE, SizedRecord, key, "resized nets")


def _same_build(folder: Path, begun: BuildInfo, info: BuildInfo) -> BuildInfo:
    """Check that a build can be resumed, and return its new inputs."""
    if begun.settings.num_sizes > info.settings.num_sizes:
        raise InputError(
            f"{folder}: was built with --sizes --num-sizes {begun.settings.num_sizes}; give these, "
            "or choose another --out"
        )
    without = [
        replace(build, settings=replace(build.settings, num_sizes=0)) for build in (begun, info)
    ]
    if difference := first_difference(*without):
        raise InputError(
            f"{folder}: was built of other graphs or with other settings; choose another --out "
            f"({difference})"
        )
    return info


def _take_over(
    run: RunFolder[BuildInfo, R, str],
    source: RunFolder[BuildInfo, R, str],
    part_of: Callable[[Path, str], Path],
) -> None:
    """Store the results of another run that this one lacks."""
    records = whole_records(run, part_of)
    outcomes = (
        JobOutcome(record, part_of(source.out, name).read_bytes() if record.has_rows else None)
        for name, record in whole_records(source, part_of).items()
        if name not in records
    )
    for _ in run.keep(outcomes, len(records), lambda record: part_of(run.out, run.key(record))):
        pass


def _jobs(rows: dict[str, GraphRow], settings: BuildSettings) -> dict[str, MiningJob]:
    """Return the mining job of each graph; the corpus is folded as a whole."""
    names = sorted(rows)
    classical: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    if "classical" in settings.kinds:
        sequences, _ = alphabet([rows[name].op_sequence for name in names])
        for occurrence in ranges(fold(sequences, settings.folding), settings.folding):
            classical[names[occurrence.sequence]].append((occurrence.start, occurrence.stop))
    kinds, dtypes = settings.kinds, settings.dtypes
    return {name: MiningJob(rows[name], tuple(classical[name]), kinds, dtypes) for name in names}


def mine_isolated(
    worker: JobRunner, mining: MiningJob, limits: JobLimits
) -> JobOutcome[MinedRecord]:
    """Mine one graph in its own process; the time limit is for each `PLANNED_OPS` ops."""
    payload = encode(mining).decode()
    module = "passnet.data.dataset.build"
    num_ops = len(mining.row.op_sequence)
    longer = replace(limits, seconds=limits.seconds * max(1.0, num_ops / PLANNED_OPS))
    result = worker.run(Job(f"{module}:mine_to", payload, longer, f"{module}:ready"))
    failed = MinedRecord(mining.row.full, num_ops, {}, {}, {}, error=result.failure)
    return result.outcome(MinedRecord) or JobOutcome(failed)


def ready(_: str) -> None:
    """Import the modules of mining, so that a fork of this process starts fast."""
    import passnet.graph.values.fake_limits  # noqa: F401
    from passnet.inductor.compiler import reset_dynamo
    from passnet.inductor.fusion import fusion_plan

    text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
    program = parse_program(text + "        y = torch.relu(x)\n        return (y,)\n")
    fusion_plan(Graph(program, (TensorSpec("x", (4,), "float32"),)))
    reset_dynamo()


def mine_to(payload: str, folder: Path) -> None:
    """Mine in the process, and write record and subgraphs to a folder."""
    collect_rarely()
    write_result(folder, *mine(decode(payload, MiningJob)), store.SUBGRAPHS)


def mine(job: MiningJob) -> tuple[MinedRecord, list[SubgraphRow]]:
    """Return the subgraphs of a captured graph with their places; those in other dtypes last."""
    row = job.row
    graph = graph_from_row(row.program, row.tensors, row.full)
    num_found: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    captured: Mined = {}
    error = None
    try:
        for subgraph in subgraphs_of(graph, job.classical, job.kinds, row.full[:12]):
            if isinstance(subgraph, RangeRefusal):
                refused[subgraph.kind] += 1
                common = (text for text in _REASONS if text in subgraph.reason)
                reasons[next(common, subgraph.reason[:80])] += 1
            else:
                num_found[subgraph.kind] += 1
                mined = mined_as(subgraph.graph, captured)
                mined.ranges[subgraph.start, subgraph.stop].add(subgraph.kind)
    except GraphError as cause:
        error = str(cause)[:MAX_ERROR_CHARACTERS]
    rows = _rows(row, captured, "")
    num_variants: dict[str, int] = {}
    unvaried: dict[str, str] = {}
    main = main_float(graph.tensors)
    for dtype in job.dtypes if main is not None and rows else ():
        if dtype == main:
            continue
        try:
            variants, num_lacking = _in_dtype(graph, dtype, captured)
        except GraphError as cause:
            unvaried[dtype] = str(cause)[:MAX_ERROR_CHARACTERS]
            continue
        num_variants[dtype] = len(variants)
        reasons += Counter({f"the CPU does not implement it in {dtype}": num_lacking})
        rows += _rows(row, variants, dtype)
    record = MinedRecord(
        row.full,
        len(row.op_sequence),
        dict(num_found),
        dict(refused),
        dict(reasons.most_common(MAX_REASONS)),
        num_variants,
        unvaried,
        error,
    )
    return record, rows


def _in_dtype(graph: Graph, dtype: str, captured: Mined) -> tuple[Mined, int]:
    """Return the same ranges of the graph in another dtype, except for unchanged ones and those
    with an op that the CPU does not implement in it, and the number of the latter.
    """
    varied = in_dtype(graph, dtype)
    single = Graph(single_assignment(varied.program), varied.tensors)
    parent = parent_of(single.program, inferred_specs(single))
    lacking = missing_kernels(single).keys()
    variants: Mined = {}
    num_lacking = 0
    for original, subgraph in captured.items():
        for (start, stop), kinds in subgraph.ranges.items():
            if lacking & range(start, stop):
                num_lacking += 1
                continue
            try:
                variant = cut_range(parent, start, stop)
            except CutError:
                continue  # a value that crosses the cut has no size that follows in this dtype
            if fingerprints(variant).full not in captured:
                mined = mined_as(variant, variants)
                mined.ranges[start, stop] |= kinds
                mined.original = original
    return variants, num_lacking


def _rows(parent: GraphRow, mined: Mined, variant: str) -> list[SubgraphRow]:
    nets = {source.entry for source in parent.sources}
    return store.mined_rows(mined, variant, parent.full, parent.domain, nets)


_REASONS = (
    "crosses the cut and is no tensor",
    "makes no value that is used after it",
    "made outside",
    "switches a state",
    "Inductor cannot lower it",
)
"""Parts of refusals that do not name an op or a value."""
