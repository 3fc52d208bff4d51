"""`passnet pass`: check a pass folder against graphs."""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli.options import open_suite, suite_option, task_option


@click.group("pass")
def pass_group() -> None:
    """Pass folders: check one against graphs."""


@pass_group.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@suite_option
@task_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead.")
def pass_check(folder: Path, suite_name: str, tasks: tuple[str, ...], as_json: bool) -> None:
    """Say where the passes in FOLDER match, and for a miss how near they came; nothing is timed.

    This runs the code of the pass folder in this process, without any protection.
    """
    from passnet.bench.dry_run import dry_run

    for line in dry_run(folder, open_suite(suite_name, tasks), as_json):
        click.echo(line)
