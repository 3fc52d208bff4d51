"""`passnet suite`: make a suite of a dataset, list, show and check one."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.output import print_notes, print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.executors import Executor
    from passnet.judge.suite.suite import Suite
    from passnet.judge.task import TaskGraph
    from passnet.pages.figures.drawing import OpNote

svg_option = opt.path("--svg", "A folder to draw a picture of each graph in.")


@click.group("suite")
def suite_group() -> None:
    """Make, list, show and check suites: tasks of graphs that candidates are measured on.

    SUITE is the name of a shipped suite, a Parquet file, or a folder of graphs.
    """


@suite_group.command("list")
@opt.suite_argument
@opt.json
def list_command(suite: Suite, as_json: bool) -> None:
    """List the tasks of a suite: how many graphs of how many nets each has, and its ops."""
    rows = [
        {
            "task": task.name,
            "graphs": [graph.name for graph in task.graphs],
            "nets": sorted({graph.source.net for graph in task.graphs if graph.source}),
            "ops": list(task.ops),
        }
        for task in suite.tasks
    ]
    print_result(
        as_json,
        rows,
        (
            f"{row['task']}: {len(row['graphs'])} graphs of {len(row['nets'])} nets: "
            + " ".join(op.rsplit(".", 1)[-1] for op in row["ops"])
            for row in rows
        ),
    )


@suite_group.command("show")
@opt.suite_argument
@svg_option
@opt.flag("--times", "With --svg, run the ops of each graph in eager torch, and show their times.")
@opt.flag("--fusion", "With --svg, show what Inductor would fuse.")
def show_command(suite: Suite, svg: Path | None, times: bool = False, fusion: bool = False) -> None:
    """Print the tasks of a suite: their ops, graphs and arguments; with --svg, draw the graphs."""
    from passnet.core.records.serialise import make_folder, write_text
    from passnet.pages.figures.dot_layout import ABSENT, has_dot
    from passnet.pages.figures.drawing import draw
    from passnet.pages.tables.listing import list_task

    for task in suite.tasks:
        click.echo("\n".join([*list_task(task), ""]))
    if svg is None:
        if times or fusion:
            raise InputError("--times and --fusion are shown in drawings; give --svg FOLDER too")
        return
    make_folder(svg)
    graphs = [graph for task in suite.tasks for graph in task.graphs]
    if not has_dot():
        print_notes([ABSENT])
    for graph in graphs:
        notes = _op_notes(graph, times, fusion)
        write_text(svg / f"{graph.name}.svg", draw(graph.graph, graph.name, notes))
    click.echo(f"{len(graphs)} graphs are drawn in {svg}")


def _op_notes(graph: TaskGraph, times: bool, fusion: bool) -> list[OpNote]:
    """What is drawn of each op beside the graph."""
    if not (times or fusion):
        return []
    from passnet.bench.profiling.eager_ops import op_times
    from passnet.graph.device import retarget
    from passnet.graph.fx.build import build
    from passnet.graph.values.cost import torch_arguments
    from passnet.inductor.fusion import fusion_plan
    from passnet.pages.figures.drawing import OpNote

    here = retarget(graph.graph, "cpu")
    num_ops = len(here.program.ops)
    all_ms: list[float | None] = [None] * num_ops
    if times:
        module = build(here.program, graph.name)
        all_ms = [op.ms for op in op_times(module, torch_arguments(here, "fresh", 0))]
    kernels: dict[int, int] = {}
    if fusion:
        for number, kernel in enumerate(fusion_plan(here, graph.name).kernels):
            kernels |= {op: number for op in kernel.ops if op not in kernels}
    return [OpNote(ms, kernels.get(op)) for op, ms in enumerate(all_ms)]


@suite_group.command("check")
@opt.suite_argument
@opt.choice("--distribution", ["recorded", "fresh", "both"], "The inputs to run wrong programs on: "
            "those seen at capture (recorded), those that the judge draws (fresh), or both, as the "
            "judge does.", default="both")  # fmt: skip
@opt.json
def check_command(suite: Suite, distribution: str, as_json: bool) -> None:
    """Find the graphs of a suite that cannot tell a wrong program from a right one.

    Wrong programs (zeros, an argument returned as it is, an op left out, ...) are run on every
    graph. A graph on which one passes at t = -5 is called degenerate.
    """
    from passnet.core.terminal.progress import progress
    from passnet.judge.suite.admission import INPUT_KINDS, admit_suite

    kinds = [kind for kind in INPUT_KINDS if distribution in (kind, "both")]
    with progress(f"checking {suite.name}", sum(len(task.graphs) for task in suite.tasks)) as step:
        admissions = admit_suite(suite, step)
    reasons = {admission.graph: admission.reasons(kinds) for admission in admissions}
    degenerate = {graph: programs for graph, programs in reasons.items() if programs}
    lines = [
        f"degenerate: {graph}: "
        + ", ".join(dict.fromkeys(f"{reason.program} ({reason.place})" for reason in programs))
        for graph, programs in degenerate.items()
    ]
    total = (
        f"{len(degenerate)} of {len(admissions)} graphs of {suite.name} let a wrong program pass "
        f"at t = -5 on {' and '.join(kinds)} inputs"
    )
    print_result(as_json, admissions, [*lines, total])


@suite_group.command("make")
@opt.folder
@opt.path("--out", "The file to write; NAME.parquet makes a suite called NAME.", required=True)
@opt.path("--work", "A folder for the results of admission; by default beside --out.")
@opt.choice("--kind", opt.KINDS, "The kind of subgraphs to make tasks of.", default="fusible")
@opt.count("--tasks", "The number of tasks.", "num_tasks", default=200)
@opt.count("--min-graphs", "The fewest graphs of a task.", default=1)
@opt.count("--max-graphs", "The most graphs of a task; those found in most places are taken.",
           default=396)  # fmt: skip
@opt.amount("--max-gflops", "The most arithmetic of one call of a graph, in GFLOP.", default=2.0)
@opt.amount("--max-mib", "The most memory of the inputs of a graph, in MiB.", default=64.0)
@opt.jobs("Graphs")
@opt.resume
@opt.executor
@opt.json
def make_command(folder: Path, out: Path, work: Path | None, max_gflops: float, jobs: int,
                 resume: bool, executor: Executor, as_json: bool,
                 **selection: Any) -> None:  # fmt: skip
    """Make a suite of the dataset in FOLDER.

    The tasks are those that add the most pairs of ops and are rare; each has one graph for every
    bucket of sizes and dtypes. Graphs on which a wrong program passes are left out.
    """
    from collections import Counter

    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import progress
    from passnet.judge.suite.assembly import AssemblyPlan, assemble
    from passnet.judge.suite.selection import SelectionPlan, domains_of, nets_of

    if out.suffix != ".parquet":
        raise InputError(f"{out}: a suite is a .parquet file; its stem is the suite's name")
    if selection["min_graphs"] > selection["max_graphs"]:
        raise InputError("--min-graphs is above --max-graphs; no task has that many graphs")
    plan = AssemblyPlan(SelectionPlan(**selection), max_gflops)
    work = work or out.with_suffix(".work")
    announce = partial(progress, "admitting subgraphs")
    assembled = assemble(
        folder,
        plan,
        out,
        work,
        RunPlan(num_workers=jobs, resume=resume, executor=executor),
        announce=announce,
    )
    refused = [record for record in assembled.admissions if not record.is_admitted]
    degenerate = sum(bool(record.wrong) for record in refused)
    dtypes = Counter(sorted(row.dtype for task in assembled.tasks for row in task.rows))
    facts = {
        "tasks": len(assembled.tasks),
        "graphs": sum(dtypes.values()),
        "nets": len(nets_of(assembled.tasks)),
        "domains": domains_of(assembled.tasks),
        "dtypes": dict(dtypes),
        "tried": len(assembled.admissions),
        "degenerate": degenerate,
        "not_run": len(refused) - degenerate,
        "content_hash": assembled.suite.content_hash,
    }
    counts = [
        f"{name}: " + ", ".join(f"{group} {count}" for group, count in facts[name].items())
        for name in ("domains", "dtypes")
    ]
    lines = [
        f"{facts['tasks']} tasks, {facts['graphs']} graphs of {facts['nets']} nets in {out}",
        *counts,
        f"{facts['tried']} graphs tried: on {degenerate} a wrong program passes, "
        f"{facts['not_run']} are too much work or do not run",
    ]
    print_result(as_json, facts, lines)


def alias(command: click.Command, name: str) -> click.Command:
    """A command of `passnet suite` under its old name; its help says so, and lists leave it out."""
    twin = copy.copy(command)
    twin.name, twin.hidden = name, True
    twin.help = f"An alias of `passnet suite {command.name}`; it goes with the next version.\n\n"
    twin.help += command.help or ""
    return twin
