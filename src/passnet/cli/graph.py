"""`passnet graph`: check graph directories, show one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from passnet.cli import options as opt
from passnet.cli.output import print_result


@click.group()
def graph() -> None:
    """Check and print graph directories."""


@graph.command("check")
@opt.paths
@click.option("--no-build", is_flag=True,
              help="Only parse and round-trip the graphs, which needs no torch.")  # fmt: skip
@opt.jobs("Graphs")
@opt.json
def graph_check(paths: tuple[Path, ...], no_build: bool, jobs: int, as_json: bool) -> None:
    """Check every graph directory below PATHS.

    A graph is parsed, printed, parsed again and compared; then it is built and run under fake
    tensors, without memory. Prints a line for each failure, and a summary. Exits with 0 only if all
    graphs parse and round-trip.
    """
    from passnet.errors import GraphError
    from passnet.graph.check import check_all, find_all
    from passnet.report.progress import progress

    folders = find_all(paths)
    if not folders:
        raise GraphError(f"{paths[0]}: holds no graph (a folder with graph_net.json and model.py)")
    num_processes = min(jobs, max(1, len(folders) // 50)) if no_build else jobs
    with progress("checking graphs", len(folders)) as step:
        checks = list(check_all(folders, not no_build, num_processes, lambda _: step()))
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
        as_json,
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


@graph.command("show")
@click.argument("path", type=opt.PATH)
@click.option("--no-shapes", is_flag=True, help="Do not infer shapes, which needs no torch.")
def graph_show(path: Path, no_shapes: bool) -> None:
    """Print the graph in directory PATH: its arguments, and every op with the shape it makes."""
    from passnet.graph.files import read_sample
    from passnet.report.listing import list_graph

    sample = read_sample(path)
    for line in list_graph(sample.graph, str(path / "model.py"), shapes=not no_shapes):
        click.echo(line)
