"""A suite put to the test, each graph in a limited process, and its sound version."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobOutcome, JobRunner
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, decode, encode, write_json
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import Suite, SuiteRow, graph_of_row, make_suite, row_of_graph
from passnet.judge.task import TaskGraph
from passnet_audit.suites.admission import (
    INPUT_KINDS,
    Admission,
    AdmissionPlan,
    WrongProgramPass,
    admit_in_domain,
)
from passnet_audit.suites.domains import declare

INFO_FILE = "check.json"
RECORDS_FILE = "checks.jsonl"
LIMITS = JobLimits(180.0, 8192)
"""The limits of the check of one graph."""


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """The settings of a check; it can be resumed only with the same."""

    schema_version: int
    torch: str
    questions: AdmissionPlan
    limits: JobLimits = LIMITS


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """The admission of a graph by its content; `error` says why there is none."""

    content: str
    admission: Admission | None = None
    error: str | None = None


def check_suite(
    suite: Suite,
    questions: AdmissionPlan,
    folder: Path | None,
    plan: RunPlan,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Admission]:
    """Return the admission of every graph of a suite, in order; equal graphs are tried once.

    Args:
        suite: the graphs.
        questions: the plan of each admission.
        folder: keeps the results, so that a check can be resumed; None keeps nothing.
        plan: a plan whose items are graphs.
        progress: called with the name of each graph that is done.
    """
    graphs = {_content(graph): graph for graph in suite.graphs}
    with ExitStack() as stack:
        where = folder or Path(stack.enter_context(TemporaryDirectory(prefix="passnet-check-")))
        run = RunFolder(
            where, INFO_FILE, CheckInfo, RECORDS_FILE, GraphCheck, lambda check: check.content,
            "checks",
        )  # fmt: skip
        info = CheckInfo(SCHEMA_VERSION, str(torch.__version__), questions)
        complaint = f"{where}: holds checks with other settings; choose another --work"
        stack.enter_context(run.begin(info, plan.resume, unchanged(complaint)))
        checks = run.records()
        missing = [graph for content, graph in graphs.items() if content not in checks]
        outcomes = plan.executor(missing, partial(_checked, questions=questions), plan.num_workers)
        for check in run.keep(outcomes, len(checks)):
            checks[check.content] = check
            progress(graphs[check.content].name)
    return [_admission(graph, checks[_content(graph)]) for graph in suite.graphs]


def _content(graph: TaskGraph) -> str:
    prints = fingerprints(graph.graph)
    return prints.full or prints.literals


def _checked(
    worker: JobRunner, graph: TaskGraph, questions: AdmissionPlan
) -> JobOutcome[GraphCheck]:
    payload = encode((row_of_graph(graph), questions)).decode()
    prepare = ("passnet_audit.suites.assembly:ready", "compiles" * questions.compiles)
    result = worker.run(Job(f"{__name__}:check_to", payload, LIMITS, *prepare))
    failed = GraphCheck(_content(graph), error=result.failure)
    return result.outcome(GraphCheck) or JobOutcome(failed)


def check_to(payload: str, folder: Path) -> None:
    """Check a graph in the process, and write the record to a folder."""
    row, questions = decode(payload, tuple[SuiteRow, AdmissionPlan])
    graph = graph_of_row(row, row.name)
    check = GraphCheck(_content(graph), admit_in_domain(graph, questions))
    write_json(folder / RECORD_FILE, check)


def _admission(graph: TaskGraph, check: GraphCheck) -> Admission:
    """Return the admission of a graph under its own name, which an equal graph may lack."""
    if check.admission is None:
        reason = WrongProgramPass("reference_error", check.error or "", INPUT_KINDS)
        return Admission(graph.task, graph.name, (reason,), (), ())
    return replace(check.admission, task=graph.task, graph=graph.name)


def sound_graphs(suite: Suite, admissions: Sequence[Admission]) -> Iterator[TaskGraph]:
    """Yield the admitted graphs of a suite in the domains that they are admitted in.

    A graph whose name ends with its fingerprint gets the name of its new one.
    """
    for graph, admission in zip(suite.graphs, admissions, strict=True):
        if admission.is_admitted:
            declared = declare(graph.graph, admission.domains)
            before, after = (str(fingerprints(each).full)[:8] for each in (graph.graph, declared))
            stem = graph.name.removesuffix(before)
            name = stem + after if stem != graph.name else graph.name
            yield replace(graph, name=name, graph=declared)


def sound_version(suite: Suite, admissions: Sequence[Admission], name: str, version: str) -> Suite:
    """Return the sound version of a suite; raise SuiteError if no graph of it is sound."""
    graphs = list(sound_graphs(suite, admissions))
    return replace(make_suite(name, graphs), version=version)
