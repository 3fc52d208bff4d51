"""A suite made of a dataset: tasks are selected, and their subgraphs admitted, until all are.

A subgraph is admitted if no wrong program passes on it, and it is not too much work to judge. Every
subgraph is tried in a process of its own; what is known is kept, so that it can be resumed.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, write_json
from passnet.core.terminal.progress import ProgressStep
from passnet.data.capture.catalog import packages_of
from passnet.data.capture.record import library_of
from passnet.data.dataset.store import (
    SUBGRAPHS,
    DatasetManifest,
    SubgraphRow,
    graph_of,
    read_dataset,
)
from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.suite.balance import Shares, balanced_tasks, unseen_tasks
from passnet.judge.suite.selection import (
    EligibleRow,
    SelectionPlan,
    TaskRows,
    eligible_rows,
    select_tasks,
    tasks_of,
)
from passnet.judge.suite.suite import Suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph

INFO_FILE = "assembly.json"
RECORDS_FILE = "admissions.jsonl"
MAX_ERROR_CHARACTERS = 200

ENOUGH_TRIES = 4
"""Subgraphs with one op sequence that compute nothing, after which no others of it are tried. A
dataset of single ops holds views of thousands of shapes."""


@dataclass(frozen=True, slots=True)
class AssemblyPlan:
    """How a suite is made: of which tasks, of how many GFLOP of products and convolutions in a call
    of a subgraph at the most, within which limits a subgraph is tried, and what shares of domains
    and lengths the tasks are held to, if any.
    """

    selection: SelectionPlan = SelectionPlan()
    max_gflops: float = 2.0
    """Skip graphs that take more GFLOP than this in one call."""

    limits: JobLimits = JobLimits(180.0, 4096)
    shares: Shares | None = None


@dataclass(frozen=True, slots=True)
class AssemblyInfo:
    """What an assembly was begun with; only one with the same goes on with it."""

    schema_version: int
    max_gflops: float
    limits: JobLimits


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """Whether a subgraph can be judged on: the wrong programs that pass on it, what one call of it
    computes, and why it could not be tried.
    """

    full: str
    wrong: tuple[str, ...] = ()
    gflops: float | None = None
    error: str | None = None

    @property
    def computes_nothing(self) -> bool:
        """Whether every output is an argument of it, or a view of one."""
        return any(reason.startswith("nothing_to_compute") for reason in self.wrong)

    @property
    def is_admitted(self) -> bool:
        """Whether it may be part of a suite."""
        return not self.wrong and self.error is None


@dataclass(frozen=True, slots=True)
class Assembled:
    """A suite, its tasks as rows, and the admissions of all subgraphs that were tried for it."""

    suite: Suite
    tasks: tuple[TaskRows, ...]
    admissions: tuple[AdmissionRecord, ...]


Announce: TypeAlias = Callable[[int], AbstractContextManager[ProgressStep]]
"""Shows how far it is: told how many subgraphs are to be tried, gives what is called after each."""


def assemble(
    folder: Path,
    plan: AssemblyPlan,
    path: Path,
    work: Path,
    run: RunPlan = DEFAULT_PLAN,
    announce: Announce = lambda _: nullcontext(lambda _: None),
) -> Assembled:
    """Make a suite of the dataset in a folder, and store it in the Parquet file `path`, whose stem
    is its name.

    Admissions are kept in the folder `work`; with `run.resume`, an assembly goes on with those that
    it holds.

    Raises:
        InputError: the dataset has too few tasks; or `work` holds admissions of another plan.
    """
    manifest, rows = _eligible(folder, plan)

    def select(admissions: Mapping[str, AdmissionRecord]) -> list[TaskRows]:
        return _selected(rows, plan, admissions)

    begun = _begin(work, plan, run.resume)
    tasks, admissions = _until_admitted(begun, plan, select, run, announce)
    suite = _stored(path, tasks, manifest)
    return Assembled(suite, tuple(tasks), tuple(admissions[name] for name in sorted(admissions)))


def assemble_held_out(
    folder: Path,
    plan: AssemblyPlan,
    shown: Sequence[TaskRows],
    path: Path,
    work: Path,
    max_graphs: int = 3,
    run: RunPlan = DEFAULT_PLAN,
    announce: Announce = lambda _: nullcontext(lambda _: None),
) -> Assembled:
    """Make the suite of what is held out of another, whose tasks are `shown`, of the same dataset.

    It has up to `max_graphs` subgraphs of each of these tasks, at sizes and in dtypes that the
    other has not together; they are admitted as those of the other are. Admissions go on in `work`.

    Raises:
        InputError: `work` holds admissions of another plan; or nothing is left to hold out.
    """
    manifest, rows = _eligible(folder, plan)

    def select(admissions: Mapping[str, AdmissionRecord]) -> list[TaskRows]:
        refused = {name for name, record in admissions.items() if not record.is_admitted}
        return unseen_tasks(rows, shown, max_graphs, refused)

    begun = _begin(work, plan, True)
    tasks, admissions = _until_admitted(begun, plan, select, run, announce)
    if not tasks:
        raise InputError(f"{folder}: has no subgraph of these tasks beside those of the suite")
    suite = _stored(path, tasks, manifest)
    return Assembled(suite, tuple(tasks), tuple(admissions[name] for name in sorted(admissions)))


_Begun: TypeAlias = tuple[
    RunFolder[AssemblyInfo, AdmissionRecord, str], AbstractContextManager[object]
]


def _eligible(folder: Path, plan: AssemblyPlan) -> tuple[DatasetManifest, list[EligibleRow]]:
    manifest, files = read_dataset(folder)
    stored = (row for file in files for row in SUBGRAPHS.read(file))
    return manifest, list(eligible_rows(stored, plan.selection))


def _begin(work: Path, plan: AssemblyPlan, resume: bool) -> _Begun:
    """The run of a work folder, and what holds it while it goes on."""
    run = _run_folder(work)
    complaint = f"{work}: holds admissions under other limits; choose another --work"
    info = AssemblyInfo(SCHEMA_VERSION, plan.max_gflops, plan.limits)
    return run, run.begin(info, resume, unchanged(complaint))


def _until_admitted(
    begun: _Begun,
    plan: AssemblyPlan,
    select: Callable[[Mapping[str, AdmissionRecord]], list[TaskRows]],
    run: RunPlan,
    announce: Announce,
) -> tuple[list[TaskRows], dict[str, AdmissionRecord]]:
    """What is selected once all of it is admitted, and the admissions of all that was tried."""
    folder, held = begun
    with held:
        admissions = folder.records()
        while True:
            tasks = select(admissions)
            missing = {
                row.full: row for task in tasks for row in task.rows if row.full not in admissions
            }
            if not missing:
                return tasks, admissions
            admit_one = partial(_admit_isolated, rows=missing, plan=plan)
            outcomes = run.executor(sorted(missing), admit_one, run.num_workers)
            with announce(len(missing)) as step:
                for record in folder.keep(outcomes, len(admissions)):
                    admissions[record.full] = record
                    step(record.full[:12])


def _stored(path: Path, tasks: Sequence[TaskRows], manifest: DatasetManifest) -> Suite:
    """The suite of some tasks, stored in a file."""
    graphs = [_suite_graph(task, row, manifest.versions) for task in tasks for row in task.rows]
    suite = make_suite(path.stem, graphs)
    write_suite(path, suite)
    return suite


def read_admissions(work: Path) -> dict[str, AdmissionRecord]:
    """The admissions in a work folder, by full fingerprint; a torn last line is left out."""
    return _run_folder(work).records()


def _run_folder(work: Path) -> RunFolder[AssemblyInfo, AdmissionRecord, str]:
    return RunFolder(
        work,
        INFO_FILE,
        AssemblyInfo,
        RECORDS_FILE,
        AdmissionRecord,
        lambda record: record.full,
        "admissions",
    )


def _selected(
    rows: Sequence[EligibleRow], plan: AssemblyPlan, admissions: Mapping[str, AdmissionRecord]
) -> list[TaskRows]:
    refused = {name for name, record in admissions.items() if not record.is_admitted}
    barren = _barren(rows, admissions)
    fruitful = [candidate for candidate in rows if candidate.row.op_sequence not in barren]
    selection = plan.selection
    if plan.shares is not None:
        return list(balanced_tasks(fruitful, selection, plan.shares, refused))
    return list(select_tasks(tasks_of(fruitful, selection, refused), selection.num_tasks))


def _barren(
    rows: Sequence[EligibleRow], admissions: Mapping[str, AdmissionRecord]
) -> set[tuple[str, ...]]:
    """Op sequences that compute nothing (a view, a reshape), as far as it was tried: often enough,
    and with no subgraph that was admitted.
    """
    tried: dict[tuple[str, ...], list[AdmissionRecord]] = defaultdict(list)
    for row in (candidate.row for candidate in rows):
        if row.full in admissions:
            tried[row.op_sequence].append(admissions[row.full])
    return {
        ops
        for ops, records in tried.items()
        if sum(record.computes_nothing for record in records) >= ENOUGH_TRIES
        and not any(record.is_admitted for record in records)
    }


def _suite_graph(
    task: TaskRows, row: SubgraphRow, versions: Mapping[str, Sequence[str]]
) -> TaskGraph:
    net, first = row.nets[0], row.places[0]
    package = next((name for name in packages_of(net) if name in versions), None)
    version = versions[package][-1] if package else ""
    source = NetSource(net, library_of(net), version, first.start, first.stop, row.domain)
    name = f"{task.name}-{net.replace('/', '.')}-{row.full[:8]}"
    return TaskGraph(task.name, name, graph_of(row), source)


def _admit_isolated(
    worker: JobRunner, name: str, rows: Mapping[str, SubgraphRow], plan: AssemblyPlan
) -> JobOutcome[AdmissionRecord]:
    payload = encode((rows[name], plan.max_gflops)).decode()
    module = "passnet.judge.suite.assembly"
    result = worker.run(Job(f"{module}:admit_to", payload, plan.limits, f"{module}:ready"))
    failed = AdmissionRecord(name, error=result.failure)
    return result.outcome(AdmissionRecord) or JobOutcome(failed)


def ready(_: str) -> None:
    """Import what admission needs and try one graph, so that a fork of this process is quick."""
    import torch

    from passnet.graph.values.cost import cost
    from passnet.judge.suite.admission import admit_graph

    torch.set_num_threads(1)
    text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
    program = parse_program(text + "        y = torch.relu(x)\n        return (y,)\n")
    graph = Graph(program, (TensorSpec("x", (4, 4), "float32"),))
    cost(graph)
    admit_graph(TaskGraph("", "", graph), is_brief=True)


def admit_to(payload: str, folder: Path) -> None:
    """What runs in the process: try a subgraph, and leave the record in a folder."""
    row, max_gflops = decode(payload, tuple[SubgraphRow, float])
    write_json(folder / RECORD_FILE, admit(row, max_gflops))


def admit(row: SubgraphRow, max_gflops: float) -> AdmissionRecord:
    """The admission of a row; wrong programs are not run where that is too much work."""
    from passnet.graph.values.cost import cost
    from passnet.judge.suite.admission import admit_graph

    try:
        graph = graph_of(row)
        gflops = cost(graph).num_flops / 1e9
    except InputError as cause:
        return AdmissionRecord(row.full, error=str(cause)[:MAX_ERROR_CHARACTERS])
    if gflops > max_gflops:
        return AdmissionRecord(row.full, gflops=gflops, error="too much work")
    admission = admit_graph(TaskGraph("", "", graph), is_brief=True)
    wrong = tuple(f"{reason.program} ({reason.place})" for reason in admission.degenerate)
    return AdmissionRecord(row.full, wrong, gflops)
