"""Captured graphs to a dataset of subgraphs: fold the corpus, mine every graph, merge.

Each graph is mined in a process of its own, with limits. What is done is kept: a build that was
killed goes on.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from passnet.dataset.build_records import RECORDS_FILE, MinedRecord
from passnet.dataset.store import (
    MAX_PLACES,
    SUBGRAPHS,
    DatasetManifest,
    Occurrence,
    SubgraphRow,
    main_dtype,
    merge_subgraphs,
)
from passnet.errors import CutError, GraphError, InputError
from passnet.extract.store import GRAPHS, GraphRow, read_set
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
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
    """What a task is told: a graph, and the ranges of it that repeat in the corpus."""

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
    announce: Callable[[int], Callable[[str], None]] | None = None,
) -> tuple[list[MinedRecord], DatasetManifest]:
    """Make a dataset of the subgraphs of captured graphs.

    Args:
        folders: sets of captured graphs; see `extract.store`.
        out: the folder of the dataset.
        settings: how.
        num_workers: how many graphs at a time.
        resume: go on with what `out` holds.
        executor: where to mine.
        announce: told how many graphs there are; what it gives is called after each.

    Raises:
        InputError: there are no graphs; `out` holds a build and `resume` is off, or another one.
    """
    sets = [read_set(folder) for folder in folders]
    files = [file for _, some in sets for file in some]
    rows = {row.full: row for file in files for row in GRAPHS.read(file)}
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
    run.begin(info, resume, unchanged(complaint))
    known = run.records()
    missing = [name for name in sorted(rows) if name not in known]
    step = announce(len(missing)) if announce is not None else None
    work = partial(mine_isolated, jobs=_jobs(rows, settings), limits=settings.limits)

    def place(record: MinedRecord) -> Path:
        return _part(out, record.graph)

    outcomes = executor(missing, work, num_workers)
    for record in run.keep(outcomes, len(known), place):
        known[record.graph] = record
        if step is not None:
            step(record.graph[:12])
    parts = [_part(out, name) for name in rows if _part(out, name).exists()]
    versions: dict[str, set[str]] = {}
    for manifest, _ in sets:
        for package, found in manifest.versions.items():
            versions.setdefault(package, set()).update(found)
    merged = merge_subgraphs(parts, out, {name: sorted(some) for name, some in versions.items()})
    return [known[name] for name in sorted(rows)], merged


def _jobs(rows: dict[str, GraphRow], settings: BuildSettings) -> dict[str, MiningJob]:
    """What is to be done with each graph; the corpus is folded as a whole."""
    names = sorted(rows)
    classical: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    if "classical" in settings.kinds:
        sequences, _ = alphabet([rows[name].op_sequence for name in names])
        for item in ranges(fold(sequences, settings.folding), settings.folding):
            classical[names[item.sequence]].append((item.start, item.stop))
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
    graph = Graph(parse_program(row.program), decode(row.tensors, tuple[TensorSpec, ...], row.full))
    found: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    captured = _Found()
    error = None
    try:
        for item in subgraphs(graph, job.classical, job.kinds, row.full[:12]):
            if isinstance(item, RangeRefusal):
                refused[item.kind] += 1
                reasons[_plain(item.reason)] += 1
            else:
                found[item.kind] += 1
                captured.add(item.graph, (item.start, item.stop), item.kind)
    except GraphError as cause:
        error = str(cause)[:MAX_ERROR_CHARACTERS]
    rows = captured.rows(row)
    variants: Counter[str] = Counter()
    unvaried: dict[str, str] = {}
    main = main_float(graph.tensors)
    for dtype in job.dtypes if main is not None and rows else ():
        if dtype == main:
            continue
        try:
            others = _in_dtype(graph, dtype, captured)
        except GraphError as cause:
            unvaried[dtype] = str(cause)[:MAX_ERROR_CHARACTERS]
            continue
        variants[dtype] = len(others.graphs)
        rows += others.rows(row, dtype)
    record = MinedRecord(
        row.full,
        len(row.op_sequence),
        dict(found),
        dict(refused),
        dict(reasons.most_common(MAX_REASONS)),
        dict(variants),
        unvaried,
        error,
    )
    return record, rows


@dataclass(slots=True)
class _Found:
    """The subgraphs of one graph by full fingerprint, and where they are; for those in another
    dtype, what each was made of.
    """

    graphs: dict[str, Graph] = field(default_factory=dict)
    places: dict[str, dict[tuple[int, int], set[SubgraphKind]]] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)

    def add(self, graph: Graph, place: tuple[int, int], kind: SubgraphKind) -> str:
        name = fingerprints(graph).full
        assert name is not None, "a cut graph has specs"
        self.graphs.setdefault(name, graph)
        self.places.setdefault(name, {}).setdefault(place, set()).add(kind)
        return name

    def rows(self, parent: GraphRow, variant: str = "") -> list[SubgraphRow]:
        return [
            _row(parent, self.graphs[name], self.places[name], variant, self.originals.get(name))
            for name in sorted(self.graphs)
        ]


def _in_dtype(graph: Graph, dtype: str, captured: _Found) -> _Found:
    """The same ranges of the graph in another dtype, but for those that are the same in it.

    Raises:
        GraphError: the graph cannot be in this dtype.
    """
    varied = in_dtype(graph, dtype)
    single = Graph(single_assignment(varied.program), varied.tensors)
    parent = parent_of(single.program, inferred_specs(single))
    found = _Found()
    for original, places in captured.places.items():
        for (start, stop), kinds in places.items():
            try:
                made = cut_range(parent, start, stop)
            except CutError:
                continue  # a value that crosses the cut has no size that follows in this dtype
            if fingerprints(made).full not in captured.graphs:
                for kind in kinds:
                    found.originals[found.add(made, (start, stop), kind)] = original
    return found


def _row(
    parent: GraphRow,
    graph: Graph,
    places: dict[tuple[int, int], set[SubgraphKind]],
    variant: str,
    original: str | None,
) -> SubgraphRow:
    prints = fingerprints(graph)
    assert prints.full is not None, "a cut graph has specs"
    ops = op_sequence(graph.program)
    first = [Occurrence(parent.full, start, stop) for start, stop in sorted(places)[:MAX_PLACES]]
    return SubgraphRow(
        full=prints.full,
        literals=prints.literals,
        structure=prints.structure,
        kinds=tuple(sorted({kind for kinds in places.values() for kind in kinds})),
        program=render_program(graph.program),
        tensors=encode(graph.tensors).decode(),
        op_sequence=ops,
        num_ops=len(ops),
        dtype=main_dtype(graph.tensors),
        variant=variant,
        original=original or "",
        domain=parent.domain,
        nets=tuple(sorted({item.entry for item in parent.sources})[:MAX_PLACES]),
        num_graphs=1,
        num_places=len(places),
        places=tuple(first),
    )


_REASONS = (
    "crosses the cut and is no tensor",
    "makes no value that is used after it",
    "made outside",
    "switches a state",
    "Inductor cannot lower it",
)
"""What refusals have in common, whatever op or value they name."""


def _plain(reason: str) -> str:
    return next((text for text in _REASONS if text in reason), reason[:80])


def _part(out: Path, name: str) -> Path:
    return out / PARTS_FOLDER / f"{name[:32]}.parquet"
