"""`passnet suite`: list a suite and show its graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_notes, print_result, say
from passnet.core.terminal.counts import counted
from passnet.errors import InputError, MeasureError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite
    from passnet.judge.task import TaskGraph
    from passnet.pages.figures.drawing import OpNote


@click.group("suite", cls=ExtensibleGroup)
def suite_group() -> None:
    """Make, list, show and check suites: tasks of graphs that candidates are measured on.

    SUITE is the name of a shipped suite, a Parquet file, or a folder of graphs. A folder with the
    name of a shipped suite is ./NAME.
    """


@dataclass(frozen=True, kw_only=True)
class SuiteListOptions:
    """Options of `passnet suite list`."""

    suite: Suite = opt.suite(is_argument=True)

    json: bool = opt.shared("json")


@opt.command("list", suite_group)
def list_command(options: SuiteListOptions) -> None:
    """List the tasks of a suite (demo unless given): numbers of graphs and nets, and ops."""
    from passnet.judge.suite.shipped import shipped_suites

    suite = options.suite
    rows = [
        {
            "task": task.name,
            "graphs": [graph.name for graph in task.graphs],
            "nets": sorted({graph.source.net for graph in task.graphs if graph.source}),
            "ops": list(task.ops),
        }
        for task in suite.tasks
    ]
    lines = [
        f"{row['task']}: {counted(len(row['graphs']), 'graph')} of "
        f"{counted(len(row['nets']), 'net')}: "
        + " ".join(op.rsplit(".", 1)[-1] for op in row["ops"])
        for row in rows
    ]
    numbers = (counted(len(suite.tasks), "task"), counted(len(suite.graphs), "graph"))
    total = f"suite {suite.name}: {' with '.join(numbers)}"
    if click.get_current_context().get_parameter_source("suite") == ParameterSource.DEFAULT:
        total += f"; shipped: {', '.join(shipped_suites())}"
    print_result(options.json, rows, [*lines, total])


@dataclass(frozen=True, kw_only=True)
class SuiteShowOptions:
    """Options of `passnet suite show`."""

    suite: Suite = opt.suite(is_argument=True)

    svg: Path | None = None
    """Draw a picture of each graph in this folder."""

    times: bool = False
    """With --svg, run the ops of each graph in eager torch, and show their times."""

    fusion: bool = False
    """With --svg, show what Inductor would fuse."""

    json: bool = opt.shared("json")


@opt.command("show", suite_group)
def show_command(options: SuiteShowOptions) -> None:
    """Print the tasks of a suite: their ops, graphs and arguments; with --svg, draw the graphs."""
    from passnet.core.records.folders import below
    from passnet.core.records.serialise import make_folder, write_text
    from passnet.pages.figures.drawing import draw
    from passnet.pages.figures.layout import ABSENT, has_dot
    from passnet.pages.tables.listing import graph_facts, list_task

    graphs = [graph for task in options.suite.tasks for graph in task.graphs]
    if options.json:
        print_json([{"task": g.task, **graph_facts(g.graph, g.name)} for g in graphs])
    for task in () if options.json else options.suite.tasks:
        say("\n".join([*list_task(task), ""]))
    if options.svg is None:
        if options.times or options.fusion:
            raise InputError("--times and --fusion are shown in drawings; give --svg FOLDER too")
        return
    make_folder(options.svg)
    if not has_dot():
        print_notes([ABSENT])
    for graph in graphs:
        notes = _op_notes(graph, options.times, options.fusion)
        path = below(options.svg, f"{graph.name}.svg")
        make_folder(path.parent)
        write_text(path, draw(graph.graph, graph.name, notes))
    say(f"{counted(len(graphs), 'graph')} drawn in {options.svg}", err=options.json)


@dataclass(frozen=True, kw_only=True)
class SuiteWeighOptions:
    """Options of `passnet suite weigh`."""

    suite: Suite = opt.suite(is_argument=True)

    graphs: Path = Path("captures")
    """Find the nets of the tasks in this folder of captured graphs."""

    nets: int = opt.field(1, least=1)
    """Measure each task in this many nets that hold it."""

    max_mib: float = opt.field(64.0, option="max-mib")
    """Leave out nets whose arguments, weights among them, are larger, in MiB."""

    run: Path | None = opt.field(None, option="from")
    """Measure nothing, and take the times from this run of `suite weigh` or `bench apply`."""

    out: Path
    """Write the run and its shares to this folder."""

    plan: RunPlan = opt.plan("resume", "retry", jobs=1)

    settings: RunSettings = opt.judging(*opt.LIMITS)

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("weigh", suite_group)
def weigh_command(options: SuiteWeighOptions) -> None:
    """Measure the share of nets' time that each task of a suite takes.

    Inductor compiles the graph of the task, and nets that hold its ops in one piece; both are
    judged and timed like candidates. The shares weigh the tasks in the AS by share.
    """
    from dataclasses import asdict

    from passnet.bench.in_nets import find_places
    from passnet.bench.shares import SHARES_FILE, shares_in_run, time_in_nets
    from passnet.core.records.serialise import make_folder, write_json
    from passnet.core.terminal.progress import progress
    from passnet.pages.tables.cells import percent

    suite, out, run = options.suite, options.out, options.run
    sizes = (options.nets, options.max_mib)
    places, notes = find_places(suite.tasks, options.graphs, *sizes, is_held=True)
    print_notes([*suite.notes, *notes], options.sandbox if run is None else None)
    if run is None:
        settings = replace(options.settings, sandbox=options.sandbox.name)
        with progress("judging in nets", 2 * len(places)) as step:
            time_in_nets(places, out, settings, replace(options.plan, progress=step))
    found = shares_in_run(suite, places, run or out)
    make_folder(out)
    write_json(out / SHARES_FILE, found)
    lines = (
        f"{each.task} in {each.net}: {percent(each.share)} % of its time, {each.places} places"
        for each in found.nets
    )
    last = f"shares of {len(found.tasks)} of {len(suite.tasks)} tasks: {out / SHARES_FILE}"
    print_result(options.json, asdict(found), (*lines, last))


def _op_notes(graph: TaskGraph, times: bool, fusion: bool) -> list[OpNote]:
    """Return the time and kernel of each op, as far as they are drawn."""
    if not (times or fusion):
        return []
    from passnet.bench.profiling.eager_ops import op_times
    from passnet.graph.fx.build import build
    from passnet.graph.spec import retarget
    from passnet.graph.values.cost import torch_arguments
    from passnet.inductor.fusion import fusion_plan
    from passnet.pages.figures.drawing import OpNote

    here = retarget(graph.graph, "cpu")
    num_ops = len(here.program.ops)
    all_ms: list[float | None] = [None] * num_ops
    if times:
        module = build(here.program, graph.name)
        try:
            all_ms = [op.ms for op in op_times(module, torch_arguments(here, "fresh", 0))]
        except MeasureError as cause:
            print_notes([f"{graph.name}: drawn without times; {cause}"])
    kernels: dict[int, int] = {}
    if fusion:
        for number, kernel in enumerate(fusion_plan(here, graph.name).kernels):
            kernels |= {op: number for op in kernel.ops if op not in kernels}
    return [OpNote(ms, kernels.get(op)) for op, ms in enumerate(all_ms)]
