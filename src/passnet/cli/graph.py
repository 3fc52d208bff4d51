"""`passnet graph`: check graph directories, show one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_result, say
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.data.capture.store import GraphRow


@click.group(cls=ExtensibleGroup)
def graph() -> None:
    """Check and print graph directories."""


@dataclass(frozen=True, kw_only=True)
class GraphCheckOptions:
    """Options of `passnet graph check`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    no_build: bool = False
    """Only parse and round-trip the graphs, which needs no torch."""

    plan: RunPlan = opt.plan("num_workers")

    json: bool = opt.shared("json")


@opt.command("check", graph)
def graph_check(options: GraphCheckOptions) -> None:
    """Check every graph directory below PATHS.

    A graph is parsed, printed, parsed again and compared; then it is built and run under fake
    tensors, without memory. Prints a line for each failure, and a summary. Exits with 0 only if all
    graphs parse and round-trip.
    """
    from passnet.core.terminal.progress import progress
    from passnet.errors import GraphError
    from passnet.graph.text.check import check_all
    from passnet.graph.text.files import find_graphs

    paths, no_build, jobs = options.paths, options.no_build, options.plan.num_workers
    folders = [folder for path in paths for folder in find_graphs(path)]
    if not folders:
        raise GraphError(f"{paths[0]}: holds no graph (a folder with graph_net.json and model.py)")
    num_processes = min(jobs, max(1, len(folders) // 50)) if no_build else jobs
    with progress("checking graphs", len(folders)) as step:
        checks = []
        for check in check_all(folders, not no_build, num_processes):
            checks.append(check)
            step()
    failed = [check for check in checks if not check.parsed]
    unbuilt = [check for check in checks if check.built is False]
    num_parsed = len(checks) - len(failed)
    summary = {
        "graphs": len(checks),
        "parsed": num_parsed,
        "built": None if no_build else num_parsed - len(unbuilt),
        "ops": sum(check.num_ops for check in checks),
        "structures": len({check.structure for check in checks if check.structure}),
        "distinct": len({check.full for check in checks if check.full}),
    }
    built = "" if no_build else f", {summary['built']} run under fake tensors"
    print_result(
        options.json,
        {**summary, "failures": [check for check in checks if check.error]},
        [
            *(f"FAILED {check.error}" for check in failed),
            *(f"parses, but does not build: {check.error}" for check in unbuilt),
            f"{num_parsed} of {len(checks)} graphs parse and round-trip{built}; {summary['ops']} "
            f"ops, {summary['structures']} structures, {summary['distinct']} distinct with "
            "literals and shapes",
        ],
    )
    if failed:
        sys.exit(1)


@dataclass(frozen=True, kw_only=True)
class GraphShowOptions:
    """Options of `passnet graph show`."""

    path: Path = opt.argument()

    graph: str | None = opt.field(None, metavar="N|FINGERPRINT")
    """Print this one of several captured graphs: its number from 1, or the first characters of its
    fingerprint; the first by default.
    """

    no_shapes: bool = False
    """Do not infer shapes, which needs torch."""

    json: bool = opt.shared("json")


@opt.command("show", graph)
def graph_show(options: GraphShowOptions) -> None:
    """Print the graph in PATH: its arguments, and every op with the shape it makes.

    PATH is a graph directory, or what `passnet extract` wrote: a folder or a Parquet file.
    """
    from passnet.data.capture.store import MANIFEST_FILE
    from passnet.graph.text.files import graph_from_row, read_sample
    from passnet.pages.tables.listing import graph_facts, list_graph

    path, choice = options.path, options.graph
    if path.is_dir() and not (path / MANIFEST_FILE).exists():
        if choice is not None:
            raise InputError(f"{path}: one graph directory; --graph is for captured graphs")
        graph, where = read_sample(path).graph, str(path / "model.py")
    else:
        row = _captured_graph(path, choice or "1", options.json)
        graph, where = graph_from_row(row.program, row.tensors, row.full[:16]), row.full[:16]
    if options.json:
        print_json(graph_facts(graph, where))
        return
    for line in list_graph(graph, where, shapes=not options.no_shapes):
        say(line)


def _captured_graph(path: Path, choice: str, as_json: bool) -> GraphRow:
    """Return a row of captured graphs by number or fingerprint, and print its number."""
    from passnet.data.capture.store import GRAPHS, read_set

    files = read_set(path)[1] if path.is_dir() else [path]
    num_graphs = sum(GRAPHS.check(file) for file in files)
    rows = enumerate((row for file in files for row in GRAPHS.read(file)), start=1)
    if choice in map(str, range(1, num_graphs + 1)):
        matches = [next(pair for pair in rows if pair[0] == int(choice))]
    else:
        matches = [pair for pair in rows if pair[1].full.startswith(choice)]
    if len(matches) != 1:
        raise InputError(
            f"{path}: {len(matches)} of {num_graphs} graphs have a fingerprint that begins with "
            f"{choice}; give a number from 1 to {num_graphs}, or other characters"
        )
    [(number, row)] = matches
    say(f"graph {number} of {num_graphs}: {row.full}", err=as_json)
    say(f"sources: {len(row.sources)}, the first {row.sources[0].entry}", err=as_json)
    return row
