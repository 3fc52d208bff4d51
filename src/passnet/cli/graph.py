"""`passnet graph`: check graph directories, show one."""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli.options import jobs_option
from passnet.cli.output import print_json

FAILURE = 1


@click.group()
def graph() -> None:
    """Graph directories: check them, show them."""


@graph.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--no-build", is_flag=True, help="Only parse and round-trip; needs no torch.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object instead.")
@click.pass_context
def graph_check(
    ctx: click.Context, paths: tuple[Path, ...], no_build: bool, jobs: int, as_json: bool
) -> None:
    """Check every graph directory below PATHS.

    Does it parse, does its print parse to the same, does it build? Building runs the graph under
    fake tensors, without memory. Prints a line for each failure and a summary. Exits 0 only if all
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
    failed = [item for item in checks if not item.parsed]
    unbuilt = [item for item in checks if item.built is False]
    summary = {
        "graphs": len(checks),
        "parsed": len(checks) - len(failed),
        "built": None if no_build else len(checks) - len(failed) - len(unbuilt),
        "ops": sum(item.num_ops for item in checks),
        "structures": len({item.structure for item in checks if item.structure}),
        "distinct": len({item.full for item in checks if item.full}),
    }
    if as_json:
        print_json({**summary, "failures": [item for item in checks if item.error]})
    else:
        for item in failed:
            click.echo(f"FAILED {item.error}")
        for item in unbuilt:
            click.echo(f"parses, but does not build: {item.error}")
        text = f"{summary['parsed']} of {summary['graphs']} graphs parse and round-trip"
        if not no_build:
            text += f", {summary['built']} run under fake tensors"
        click.echo(
            f"{text}; {summary['ops']} ops, {summary['structures']} structures, "
            f"{summary['distinct']} distinct with literals and shapes"
        )
    if failed:
        ctx.exit(FAILURE)


@graph.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--no-shapes", is_flag=True, help="Do not infer shapes; needs no torch.")
def graph_show(path: Path, no_shapes: bool) -> None:
    """Print the graph in directory PATH: its arguments, and every op with the shape it makes."""
    from passnet.graph.files import read_sample
    from passnet.report.listing import list_graph

    sample = read_sample(path)
    for line in list_graph(sample.graph, str(path / "model.py"), shapes=not no_shapes):
        click.echo(line)
