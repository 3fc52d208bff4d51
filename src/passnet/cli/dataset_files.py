"""`passnet dataset verify|export|import`: a dataset checked, and in the layouts of others."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from passnet.cli.dataset_rows import folder_argument
from passnet.cli.options import jobs_option
from passnet.cli.output import print_json

LEFT_OUT_SHOWN = 20


@click.command("verify")
@folder_argument
@click.option("--run", "num_runs", default=0, type=click.IntRange(min=0), help="Rows to run.")
@click.option("--seed", default=0, show_default=True, help="Which rows, and of their inputs.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON instead.")
@click.pass_context
def verify_command(
    ctx: click.Context, folder: Path, num_runs: int, seed: int, jobs: int, as_json: bool
) -> None:
    """Check a dataset: its files against the manifest, every row against its text.

    With --run, so many rows are built and run with the inputs seen at capture, each in a process of
    its own. Exits with 1 where something is wrong.
    """
    from passnet.dataset.verification import verify
    from passnet.report.progress import progress

    with ExitStack() as stack:
        found = verify(
            folder,
            num_runs,
            jobs,
            seed,
            lambda what, total: stack.enter_context(progress(what, total)),
        )
    if as_json:
        print_json({"ok": found.ok, "found": found})
    else:
        for text in (*found.files, *found.rows, *found.runs):
            click.echo(f"WRONG {text}")
        click.echo(
            f"{found.num_rows} rows, {found.num_wrong} wrong; {len(found.files)} errors of files; "
            f"{found.num_run} run, {found.num_failed} failed"
        )
    if not found.ok:
        ctx.exit(1)


@click.command("export")
@folder_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write.")
@click.option(
    "--layout",
    required=True,
    type=click.Choice(["graphnet", "passnet", "hf"]),
    help="A directory a graph; tasks of such; or Parquet files with a card for Hugging Face.",
)
@click.option("--where", help="Only rows for which this is true; see passnet dataset query.")
@click.option("--name", default="subgraphs", show_default=True, help="Of the set, or on the card.")
@click.option(
    "--split", type=click.Path(path_type=Path), help="For hf: a folder of passnet dataset split."
)
@click.option("--license", "license_name", default="mit", show_default=True, help="On the card.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON instead.")
def export_command(
    folder: Path,
    out: Path,
    layout: str,
    where: str | None,
    name: str,
    split: Path | None,
    license_name: str,
    as_json: bool,
) -> None:
    """Write the rows of a dataset in a layout that others read."""
    from passnet.dataset.export import LAYOUTS, ExportPlan, export_dataset
    from passnet.dataset.query import Dataset
    from passnet.dataset.splits import read_split
    from passnet.errors import InputError
    from passnet.report.progress import progress

    if split is not None and layout != "hf":
        raise InputError("--split is for --layout hf; other layouts have no splits")
    [wanted] = [item for item in LAYOUTS if item == layout]
    sides = read_split(split)[1] if split is not None else {}
    plan = ExportPlan(wanted, where, name, sides, license_name)
    with ExitStack() as stack:
        dataset = stack.enter_context(Dataset(folder))
        done = export_dataset(
            dataset, out, plan, lambda total: stack.enter_context(progress("writing rows", total))
        )
    if as_json:
        print_json(done)
        return
    what = "files" if layout == "hf" else "directories"
    tasks = f", {done.num_tasks} tasks" if layout == "passnet" else ""
    click.echo(f"{done.num_rows} rows as {done.num_written} {what}{tasks}, in {out}")


@click.command("import")
@folder_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for it.")
@click.option("--strict", is_flag=True, help="Stop at a directory that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help="Print what was read as JSON instead.")
def import_command(folder: Path, out: Path, strict: bool, as_json: bool) -> None:
    """Make a dataset of graph directories (GraphNet's, PassNet's), or of an exported dataset."""
    from passnet.dataset.importer import import_dataset
    from passnet.report.progress import progress

    with ExitStack() as stack:
        done = import_dataset(
            folder,
            out,
            strict,
            lambda total: stack.enter_context(progress("reading graphs", total)),
        )
    if as_json:
        print_json(done)
        return
    for item in done.left_out[:LEFT_OUT_SHOWN]:
        click.echo(f"LEFT OUT {item.path}: {item.reason}")
    click.echo(
        f"{done.num_read} graphs read, {len(done.left_out)} left out; "
        f"{done.dataset.num_subgraphs} rows, in {out}"
    )
