"""`passnet bench list|show|admit|make`: what a suite holds, what it is worth, and new ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.options import jobs_option, open_suite, task_option
from passnet.cli.output import print_json

if TYPE_CHECKING:
    from passnet.suite.suite import Suite


@click.command("list")
@click.argument("suite_name", default="demo")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def list_command(suite_name: str, as_json: bool) -> None:
    """List the tasks of a suite: how many graphs, of which nets, and their ops."""
    suite = open_suite(suite_name, ())
    rows = [
        {
            "task": task.name,
            "graphs": [item.name for item in task.graphs],
            "nets": sorted({item.source.net for item in task.graphs if item.source}),
            "ops": list(task.ops),
        }
        for task in suite.tasks
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        names = " ".join(op.rsplit(".", 1)[-1] for op in row["ops"])
        click.echo(
            f"{row['task']}: {len(row['graphs'])} graphs of {len(row['nets'])} nets: {names}"
        )


@click.command("admit")
@click.argument("suite_name", default="demo")
@task_option
@click.option(
    "--distribution",
    default="both",
    show_default=True,
    type=click.Choice(["recorded", "fresh", "both"]),
    help="The inputs that a graph would be judged with.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def admit_command(
    suite_name: str, tasks: tuple[str, ...], distribution: str, as_json: bool
) -> None:
    """Say which graphs of a suite cannot tell a wrong program from a right one.

    Wrong programs (zeros, an input, an op left out, ...) are run on every graph; one that passes at
    t = -5 makes the graph degenerate.
    """
    from passnet.report.progress import progress
    from passnet.suite.admission import KINDS, admit_suite

    kinds = [kind for kind in KINDS if distribution in (kind, "both")]
    suite = open_suite(suite_name, tasks)
    with progress(f"admitting {suite.name}", sum(len(item.graphs) for item in suite.tasks)) as step:
        admissions = admit_suite(suite, step)
    if as_json:
        print_json(admissions)
        return
    degenerate = [item for item in admissions if item.reasons(kinds)]
    for item in degenerate:
        names = dict.fromkeys(
            f"{reason.program} ({reason.place})" for reason in item.reasons(kinds)
        )
        click.echo(f"degenerate: {item.graph}: {', '.join(names)}")
    click.echo(
        f"{len(degenerate)} of {len(admissions)} graphs of {suite.name} let a wrong program pass "
        f"at t = -5 on {' and '.join(kinds)} inputs"
    )


def show_suite(suite: Suite, svg: Path | None) -> None:
    """Print the tasks of a suite, and draw their graphs into a folder."""
    from passnet.records.serialise import make_folder
    from passnet.report.drawing import draw
    from passnet.report.listing import list_task

    for task in suite.tasks:
        for line in list_task(task):
            click.echo(line)
        click.echo()
    if svg is None:
        return
    make_folder(svg)
    graphs = [item for task in suite.tasks for item in task.graphs]
    for item in graphs:
        (svg / f"{item.name}.svg").write_text(draw(item.graph, item.name), encoding="utf-8")
    click.echo(f"{len(graphs)} graphs are drawn in {svg}")


@click.command("make")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="The file, NAME.parquet."
)
@click.option("--work", type=click.Path(path_type=Path), help="Folder for admissions.")
@click.option("--kind", default="fusible", show_default=True, help="classical, fusible or single.")
@click.option("--tasks", "num_tasks", default=200, show_default=True, type=click.IntRange(min=1))
@click.option("--min-graphs", default=1, show_default=True, help="Of a task.")
@click.option("--max-graphs", default=396, show_default=True, help="Of a task.")
@click.option("--max-gflops", default=2.0, show_default=True, help="Of a call of a graph.")
@click.option("--max-mib", default=64.0, show_default=True, help="Inputs of a graph.")
@jobs_option
@click.option("--resume", is_flag=True, help="Go on with the admissions of the work folder.")
@click.option("--executor", "place", default="local", show_default=True, help="local or ray.")
@click.option("--json", "as_json", is_flag=True, help="Print what came of it as JSON instead.")
def make_command(folder: Path, out: Path, work: Path | None, kind: str, num_tasks: int,
                 min_graphs: int, max_graphs: int, max_gflops: float, max_mib: float, jobs: int,
                 resume: bool, place: str, as_json: bool) -> None:  # fmt: skip
    """Make a suite of the dataset in FOLDER.

    Tasks are taken that add most op pairs and are rare; of each, one graph a bucket of sizes and
    dtypes. Graphs on which a wrong program passes are left out.
    """
    from collections import Counter

    from passnet.errors import InputError
    from passnet.jobs.executors import executor
    from passnet.mine.subgraphs import KINDS
    from passnet.report.progress import progress
    from passnet.suite.assembly import AssemblyPlan, assemble
    from passnet.suite.selection import SelectionPlan, domains_of, nets_of

    kinds = {name: name for name in KINDS}
    if kind not in kinds:
        raise InputError(f"no kind {kind!r} of subgraphs; there are {', '.join(KINDS)}")
    if out.suffix != ".parquet":
        raise InputError(f"{out}: a suite is a .parquet file; its stem is the suite's name")
    plan = AssemblyPlan(
        SelectionPlan(
            kinds[kind], num_tasks, min_graphs=min_graphs, max_graphs=max_graphs, max_mib=max_mib
        ),
        max_gflops,
    )
    made = assemble(
        folder,
        plan,
        out,
        work or out.with_suffix(".work"),
        jobs,
        resume,
        executor(place),
        lambda count: progress("admitting subgraphs", count),
    )
    refused = [item for item in made.admissions if not item.is_admitted]
    degenerate = sum(bool(item.wrong) for item in refused)
    dtypes = Counter(sorted(row.dtype for task in made.tasks for row in task.rows))
    facts = {
        "tasks": len(made.tasks),
        "graphs": sum(dtypes.values()),
        "nets": len(nets_of(made.tasks)),
        "domains": domains_of(made.tasks),
        "dtypes": dict(dtypes),
        "tried": len(made.admissions),
        "degenerate": degenerate,
        "not_run": len(refused) - degenerate,
        "content_hash": made.suite.content_hash,
    }
    if as_json:
        print_json(facts)
        return
    click.echo(f"{facts['tasks']} tasks, {facts['graphs']} graphs of {facts['nets']} nets in {out}")
    for what in ("domains", "dtypes"):
        listed = ", ".join(f"{name} {count}" for name, count in facts[what].items())
        click.echo(f"{what}: {listed}")
    click.echo(
        f"{facts['tried']} graphs tried: on {degenerate} a wrong program passes, "
        f"{facts['not_run']} are too much work or do not run"
    )
