"""Suites made of a dataset: tasks are selected, and their subgraphs admitted, until all are.

A subgraph is admitted if no wrong program passes on it, it is sound, and it is not too much work to
judge. Each trial runs in its own process; results are kept, so that an assembly can be resumed.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, write_json
from passnet.core.terminal.progress import ProgressStep
from passnet.data.capture.record import library_of
from passnet.data.dataset import store
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph, TensorSpec, ValueDomain
from passnet.graph.text.parse import parse_program
from passnet.judge.suite.suite import Suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph
from passnet_audit.suites.balance import Shares, balanced_tasks, unseen_tasks
from passnet_audit.suites.domains import declare
from passnet_audit.suites.selection import (
    EligibleRow,
    SelectionPlan,
    TaskRows,
    eligible_rows,
    select_tasks,
    tasks_of,
)

INFO_FILE = "assembly.json"
RECORDS_FILE = "admissions.jsonl"
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class AssemblyPlan:
    """The tasks of a suite, and the bounds within which their subgraphs are admitted.

    `max_gflops` counts products and convolutions; `limits` bound the trial of one subgraph. Once
    `enough_tries` subgraphs of one op sequence compute nothing, no others of it are tried. With
    `compiles`, Inductor must agree with float64 where eager PyTorch does.
    """

    selection: SelectionPlan = SelectionPlan()
    max_gflops: float = 2.0
    """Skip graphs that take more GFLOP than this in one call."""
    limits: JobLimits = JobLimits(180.0, 4096)
    shares: Shares | None = None
    enough_tries: int = 4
    compiles: bool = True


@dataclass(frozen=True, slots=True)
class AssemblyInfo:
    """The limits of an assembly; it can be resumed only with the same."""

    schema_version: int
    max_gflops: float
    limits: JobLimits
    compiles: bool = True


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """The wrong programs that pass on a subgraph, the work of one call, and the error if any.

    `wrong` names a fault that makes it unsound, too; `domains` are those that it is admitted in.
    """

    full: str
    wrong: tuple[str, ...] = ()
    gflops: float | None = None
    error: str | None = None
    domains: dict[str, ValueDomain] = field(default_factory=dict)

    @property
    def computes_nothing(self) -> bool:
        """True if every output is an argument, or a view of one."""
        return any(reason.startswith("nothing_to_compute") for reason in self.wrong)

    @property
    def is_admitted(self) -> bool:
        """True if it may be part of a suite."""
        return not self.wrong and self.error is None


@dataclass(frozen=True, slots=True)
class Assembled:
    """A suite, its tasks as rows, and the admissions of all subgraphs tried for it."""

    suite: Suite
    tasks: tuple[TaskRows, ...]
    admissions: tuple[AdmissionRecord, ...]


Announce: TypeAlias = Callable[[int], AbstractContextManager[ProgressStep]]
"""Opens a progress bar for a number of subgraphs; yields its step."""


@dataclass(frozen=True, slots=True)
class AssemblyWork:
    """The suite's Parquet file, the folder of the admissions, and the plan of the run."""

    path: Path
    folder: Path
    run: RunPlan = DEFAULT_PLAN
    announce: Announce = lambda _: nullcontext(lambda _: None)  # noqa: E731


def assemble(folder: Path, plan: AssemblyPlan, work: AssemblyWork) -> Assembled:
    """Make a suite of the dataset in a folder, continuing with the admissions in `work.folder`.

    Raises InputError for too few tasks, or admissions of another plan.
    """
    manifest, rows = _eligible(folder, plan)

    def select(admissions: Mapping[str, AdmissionRecord]) -> list[TaskRows]:
        return _selected(rows, plan, admissions)

    return _assembled(manifest, plan, work, select)


def assemble_held_out(
    folder: Path,
    plan: AssemblyPlan,
    work: AssemblyWork,
    shown: Sequence[TaskRows],
    max_graphs: int = 3,
) -> Assembled:
    """Make the held-out suite of another suite, whose tasks are `shown`, of the same dataset.

    It has up to `max_graphs` admitted subgraphs of each of these tasks, with sizes and dtypes that
    the other suite lacks. Raises InputError if there is nothing to hold out, or as `assemble`.
    """
    manifest, rows = _eligible(folder, plan)

    def select(admissions: Mapping[str, AdmissionRecord]) -> list[TaskRows]:
        refused = {name for name, record in admissions.items() if not record.is_admitted}
        tasks = unseen_tasks(rows, shown, max_graphs, refused)
        if not tasks:
            raise InputError(f"{folder}: has no further subgraph of the tasks of the suite")
        return tasks

    return _assembled(manifest, plan, replace(work, run=replace(work.run, resume=True)), select)


def _eligible(folder: Path, plan: AssemblyPlan) -> tuple[store.DatasetManifest, list[EligibleRow]]:
    manifest, files = store.read_dataset(folder)
    stored = (row for file in files for row in store.SUBGRAPHS.read(file))
    return manifest, list(eligible_rows(stored, plan.selection))


def _assembled(
    manifest: store.DatasetManifest,
    plan: AssemblyPlan,
    work: AssemblyWork,
    select: Callable[[Mapping[str, AdmissionRecord]], list[TaskRows]],
) -> Assembled:
    """Select and admit in turns until the whole selection is admitted, and store the suite."""
    first = None if work.run.resume else select({})  # a plan that does not fit leaves no folder
    folder = _run_folder(work.folder)
    complaint = f"{work.folder}: holds admissions under other limits; choose another --work"
    info = AssemblyInfo(SCHEMA_VERSION, plan.max_gflops, plan.limits, plan.compiles)
    with folder.begin(info, work.run.resume, unchanged(complaint)):
        admissions = folder.records()
        while True:
            tasks, first = first or select(admissions), None
            missing = {
                row.full: row for task in tasks for row in task.rows if row.full not in admissions
            }
            if not missing:
                break
            rows = [row for _, row in sorted(missing.items())]
            admit_one = partial(_admit_isolated, plan=plan)
            outcomes = work.run.executor(rows, admit_one, work.run.num_workers)
            with work.announce(len(missing)) as step:
                for record in folder.keep(outcomes, len(admissions)):
                    admissions[record.full] = record
                    step(record.full[:12])
    versions = manifest.versions
    graphs = [
        _suite_graph(task, row, versions, admissions[row.full].domains)
        for task in tasks
        for row in task.rows
    ]
    suite = make_suite(work.path.stem, graphs)
    write_suite(work.path, suite)
    return Assembled(suite, tuple(tasks), tuple(admissions[name] for name in sorted(admissions)))


def _run_folder(work: Path) -> RunFolder[AssemblyInfo, AdmissionRecord, str]:
    full = attrgetter("full")
    return RunFolder(
        work, INFO_FILE, AssemblyInfo, RECORDS_FILE, AdmissionRecord, full, "admissions"
    )


def _selected(
    rows: Sequence[EligibleRow], plan: AssemblyPlan, admissions: Mapping[str, AdmissionRecord]
) -> list[TaskRows]:
    refused = {name for name, record in admissions.items() if not record.is_admitted}
    barren = _barren(rows, admissions, plan.enough_tries)
    fruitful = [candidate for candidate in rows if candidate.row.op_sequence not in barren]
    selection = plan.selection
    if plan.shares is not None:
        return list(balanced_tasks(fruitful, selection, plan.shares, refused))
    return list(select_tasks(tasks_of(fruitful, selection, refused), selection.num_tasks))


def _barren(
    rows: Sequence[EligibleRow], admissions: Mapping[str, AdmissionRecord], enough_tries: int
) -> set[tuple[str, ...]]:
    tried: dict[tuple[str, ...], list[AdmissionRecord]] = defaultdict(list)
    for row in (candidate.row for candidate in rows):
        if row.full in admissions:
            tried[row.op_sequence].append(admissions[row.full])
    return {
        ops
        for ops, records in tried.items()
        if sum(record.computes_nothing for record in records) >= enough_tries
        and not any(record.is_admitted for record in records)
    }


def _suite_graph(
    task: TaskRows,
    row: store.SubgraphRow,
    versions: Mapping[str, Sequence[str]],
    domains: Mapping[str, ValueDomain],
) -> TaskGraph:
    from passnet.data.capture.catalog import packages_of  # needs torch; the settings do not

    net, first = row.nets[0], row.places[0]
    package = next((name for name in packages_of(net) if name in versions), None)
    version = versions[package][-1] if package else ""
    source = NetSource(net, library_of(net), version, first.start, first.stop, row.domain)
    graph = declare(store.graph_of(row), domains)
    name = f"{task.name}-{net.replace('/', '.')}-{str(fingerprints(graph).full)[:8]}"
    return TaskGraph(task.name, name, graph, source)


def _admit_isolated(
    worker: JobRunner, row: store.SubgraphRow, plan: AssemblyPlan
) -> JobOutcome[AdmissionRecord]:
    payload = encode((row, plan.max_gflops, plan.compiles)).decode()
    way, module = "compiles" * plan.compiles, "passnet_audit.suites.assembly"
    result = worker.run(Job(f"{module}:admit_to", payload, plan.limits, f"{module}:ready", way))
    failed = AdmissionRecord(row.full, error=result.failure)
    return result.outcome(AdmissionRecord) or JobOutcome(failed)


def ready(way: str) -> None:
    """Import the modules of admission and try one graph, so that a fork starts fast.

    With a text as `way`, it is compiled too, and so are Inductor's headers.
    """
    import torch

    from passnet.graph.values.cost import cost
    from passnet.inductor.compiler import compile_in_this_process, import_compilers, keep_headers
    from passnet_audit.suites.admission import AdmissionPlan, admit_graph

    torch.set_num_threads(1)
    if way:
        import_compilers()
        compile_in_this_process()
        keep_headers()
    text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
    program = parse_program(text + "        y = torch.relu(x)\n        return (y,)\n")
    graph = Graph(program, (TensorSpec("x", (4, 4), "float32"),))
    cost(graph)
    admit_graph(TaskGraph("", "", graph), AdmissionPlan(compiles=bool(way)))


def admit_to(payload: str, folder: Path) -> None:
    """Try a subgraph in the process, and write the record to a folder."""
    row, max_gflops, compiles = decode(payload, tuple[store.SubgraphRow, float, bool])
    write_json(folder / RECORD_FILE, admit(row, max_gflops, compiles))


def admit(row: store.SubgraphRow, max_gflops: float, compiles: bool = True) -> AdmissionRecord:
    """Return the admission of a row; wrong programs are not run on a graph with too much work."""
    from passnet.graph.values.cost import cost
    from passnet_audit.suites.admission import AdmissionPlan, admit_in_domain

    try:
        graph = store.graph_of(row)
        gflops = cost(graph).num_flops / 1e9
    except InputError as cause:
        return AdmissionRecord(row.full, error=str(cause)[:MAX_ERROR_CHARACTERS])
    if gflops > max_gflops:
        return AdmissionRecord(row.full, gflops=gflops, error="too much work")
    admission = admit_in_domain(TaskGraph("", "", graph), AdmissionPlan(0, True, compiles))
    return AdmissionRecord(row.full, admission.texts(), gflops, domains=admission.domains)
