"""Captured graphs to a dataset of subgraphs: fold the corpus, mine every graph, merge.

Each graph is mined in a process of its own, with limits. What is done is kept: a build that was
killed goes on.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from passnet.dataset.build_records import RECORDS_FILE, MinedRecord
from passnet.dataset.progress import ProgressStep, silent
from passnet.dataset.store import (
    MAX_PLACES,
    SUBGRAPHS,
    DatasetManifest,
    Occurrence,
    Provenance,
    SubgraphRow,
    merge_subgraphs,
    row_of_graph,
)
from passnet.errors import CutError, GraphError, InputError
from passnet.extract.store import GRAPHS, GraphRow, read_set
from passnet.graph.canonical import fingerprints
from passnet.graph.files import graph_from_row
from passnet.graph.parse import parse_program
from passnet.graph.spec import Graph, TensorSpec, main_float
from passnet.jobs.executors import Executor, run_local
from passnet.jobs.process import RECORD_FILE, ROWS_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.jobs.run_folder import RunFolder, unchanged
from passnet.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.mine.dtypes import DTYPES, in_dtype
from passnet.mine.folding import COVERING, FoldingPlan, alphabet, fold, ranges
from passnet.mine.subgraphs import SUBGRAPH_KINDS, RangeRefusal, SubgraphKind, subgraphs
from passnet.records.serialise import SCHEMA_VERSION, decode, encode, write_json

RUN_FILE = "build.json"
PARTS_FOLDER = "parts"
MAX_REASONS = 20
OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
MAX_ERROR_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How a dataset is made: the kinds of subgraphs, the dtypes that they are also made in, how to
    fold, and what a graph may take.
    """

    kinds: tuple[SubgraphKind, ...] = SUBGRAPH_KINDS
    dtypes: tuple[str, ...] = DTYPES
    folding: FoldingPlan = COVERING
    limits: JobLimits = JobLimits(300.0, 8192)


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """What a build was started with; only one with the same goes on with it."""

    schema_version: int
    settings: BuildSettings
    shards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MiningJob:
    """What a process needs to mine a graph: its row, and the ranges that repeat in the corpus."""

    row: GraphRow
    classical: tuple[tuple[int, int], ...]
    kinds: tuple[SubgraphKind, ...]
    dtypes: tuple[str, ...] = ()


def build_dataset(
    folders: Sequence[Path],
    out: Path,
    settings: BuildSettings,
    num_workers: int = 1,
    resume: bool = False,
    executor: Executor = run_local,
    announce: Callable[[int], ProgressStep] = silent,
) -> tuple[list[MinedRecord], DatasetManifest]:
    """Make a dataset, in the folder `out`, of the subgraphs of sets of captured graphs.

    With `resume`, it goes on with the build that `out` holds. `num_workers` graphs are mined at a
    time, where the executor says; `announce` is told how many there are, and what it gives is
    called after each.

    Raises:
        InputError: there are no graphs; `out` holds a build and `resume` is off, or another one.
    """
    sets = [read_set(folder) for folder in folders]
    rows = {row.full: row for _, files in sets for file in files for row in GRAPHS.read(file)}
    if not rows:
        raise InputError(f"{folders[0]}: holds no graph to mine")
    run = RunFolder(
        out,
        RUN_FILE,
        BuildInfo,
        RECORDS_FILE,
        MinedRecord,
        lambda record: record.graph,
        "mined graphs",
    )
    complaint = f"{out}: was built of other graphs or with other settings; choose another --out"
    info = BuildInfo(SCHEMA_VERSION, settings, tuple(sorted(rows)))
    versions: dict[str, set[str]] = defaultdict(set)
    for manifest, _ in sets:
        for package, numbers in manifest.versions.items():
            versions[package].update(numbers)
    with run.begin(info, resume, unchanged(complaint)):
        records = run.records()
        missing = [name for name in sorted(rows) if name not in records]
        step = announce(len(missing))
        work = partial(mine_isolated, jobs=_jobs(rows, settings), limits=settings.limits)
        outcomes = executor(missing, work, num_workers)
        for record in run.keep(outcomes, len(records), lambda record: _part(out, record.graph)):
            records[record.graph] = record
            step(record.graph[:12])
        parts = [_part(out, name) for name in rows]
        merged = merge_subgraphs([part for part in parts if part.exists()], out, versions)
    return [records[name] for name in sorted(rows)], merged


def _jobs(rows: dict[str, GraphRow], settings: BuildSettings) -> dict[str, MiningJob]:
    """What is to be done with each graph; the corpus is folded as a whole."""
    names = sorted(rows)
    classical: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    if "classical" in settings.kinds:
        sequences, _ = alphabet([rows[name].op_sequence for name in names])
        for occurrence in ranges(fold(sequences, settings.folding), settings.folding):
            classical[names[occurrence.sequence]].append((occurrence.start, occurrence.stop))
    kinds, dtypes = settings.kinds, settings.dtypes
    return {name: MiningJob(rows[name], tuple(classical[name]), kinds, dtypes) for name in names}


def mine_isolated(
    worker: JobRunner, name: str, jobs: dict[str, MiningJob], limits: JobLimits
) -> JobOutcome[MinedRecord]:
    """Mine one graph in a process of its own.

    Raises:
        WorkerError: our own machinery failed.
    """
    payload = encode(jobs[name]).decode()
    module = "passnet.dataset.build"
    result = worker.run(Job(f"{module}:mine_to", payload, limits, f"{module}:ready"))
    failed = MinedRecord(name, len(jobs[name].row.op_sequence), {}, {}, {}, error=result.failure)
    return result.outcome(MinedRecord) or JobOutcome(failed)


def ready(_: str) -> None:
    """Import what mining needs, so that a fork of this process is quick."""
    import torch

    import passnet.graph.fake_limits  # noqa: F401
    from passnet.mine.fusion import fusion_plan

    text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
    program = parse_program(text + "        y = torch.relu(x)\n        return (y,)\n")
    fusion_plan(Graph(program, (TensorSpec("x", (4,), "float32"),)))
    torch._dynamo.reset()


def mine_to(payload: str, folder: Path) -> None:
    """What runs in the process: mine, and leave record and subgraphs in a folder."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)  # the process is short; looking costs a fifth
    record, rows = mine(decode(payload, MiningJob))
    if rows:
        SUBGRAPHS.write(folder / ROWS_FILE, rows)
    write_json(folder / RECORD_FILE, record)


def mine(job: MiningJob) -> tuple[MinedRecord, list[SubgraphRow]]:
    """The subgraphs of one captured graph, each once with all its places in it.

    What was captured comes first, then the same in other dtypes.
    """
    row = job.row
    graph = graph_from_row(row.program, row.tensors, row.full)
    num_found: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    captured: _Mined = {}
    error = None
    try:
        for subgraph in subgraphs(graph, job.classical, job.kinds, row.full[:12]):
            if isinstance(subgraph, RangeRefusal):
                refused[subgraph.kind] += 1
                reasons[_common_reason(subgraph.reason)] += 1
            else:
                num_found[subgraph.kind] += 1
                mined = _mined_as(subgraph.graph, captured)
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
            variants = _in_dtype(graph, dtype, captured)
        except GraphError as cause:
            unvaried[dtype] = str(cause)[:MAX_ERROR_CHARACTERS]
            continue
        num_variants[dtype] = len(variants)
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


@dataclass(slots=True)
class _MinedSubgraph:
    """A subgraph, the kinds of its ranges in the graph, and for one in another dtype the full
    fingerprint of what it was made of.
    """

    graph: Graph
    ranges: dict[tuple[int, int], set[SubgraphKind]] = field(
        default_factory=lambda: defaultdict(set)
    )
    original: str = ""


_Mined: TypeAlias = dict[str, _MinedSubgraph]
"""The subgraphs of one graph by full fingerprint."""


def _mined_as(graph: Graph, mined: _Mined) -> _MinedSubgraph:
    full = fingerprints(graph).full
    assert full is not None, "a cut graph has specs"
    return mined.setdefault(full, _MinedSubgraph(graph))


def _in_dtype(graph: Graph, dtype: str, captured: _Mined) -> _Mined:
    """The same ranges of the graph in another dtype, but for those that are the same in it.

    Raises:
        GraphError: the graph cannot be in this dtype.
    """
    varied = in_dtype(graph, dtype)
    single = Graph(single_assignment(varied.program), varied.tensors)
    parent = parent_of(single.program, inferred_specs(single))
    variants: _Mined = {}
    for original, subgraph in captured.items():
        for (start, stop), kinds in subgraph.ranges.items():
            try:
                variant = cut_range(parent, start, stop)
            except CutError:
                continue  # a value that crosses the cut has no size that follows in this dtype
            if fingerprints(variant).full not in captured:
                mined = _mined_as(variant, variants)
                mined.ranges[start, stop] |= kinds
                mined.original = original
    return variants


def _rows(parent: GraphRow, mined: _Mined, variant: str) -> list[SubgraphRow]:
    nets = sorted({source.entry for source in parent.sources})
    rows = []
    for full, subgraph in sorted(mined.items()):
        occurrences = [Occurrence(parent.full, *ops) for ops in sorted(subgraph.ranges)]
        provenance = Provenance(
            kinds=tuple(sorted({kind for kinds in subgraph.ranges.values() for kind in kinds})),
            variant=variant,
            original=subgraph.original,
            domain=parent.domain,
            nets=tuple(nets[:MAX_PLACES]),
            num_graphs=1,
            num_places=len(occurrences),
            places=tuple(occurrences[:MAX_PLACES]),
        )
        rows.append(row_of_graph(subgraph.graph, provenance, full[:16]))
    return rows


_REASONS = (
    "crosses the cut and is no tensor",
    "makes no value that is used after it",
    "made outside",
    "switches a state",
    "Inductor cannot lower it",
)
"""What refusals have in common, whatever op or value they name."""


def _common_reason(reason: str) -> str:
    return next((text for text in _REASONS if text in reason), reason[:80])


def _part(out: Path, name: str) -> Path:
    return out / PARTS_FOLDER / f"{name[:32]}.parquet"
