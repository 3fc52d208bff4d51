"""`passnet dataset verify|export|import`: a dataset checked, and in the layouts of others."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import options as opt
from passnet.cli.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.process import JobLimits
    from passnet.data.dataset.export import Layout

LEFT_OUT_SHOWN = 20


@click.command("verify")
@opt.folder
@opt.number("--run", "The number of rows to build and run.", "num_runs", default=0)
@opt.number("--seed", "Seed of the choice of these rows, and of their inputs.", default=0)
@opt.jobs("Rows")
@opt.json
def verify_command(folder: Path, num_runs: int, seed: int, jobs: int, as_json: bool) -> None:
    """Check a dataset: its files against the manifest, every row against its text, and every
    variant against its original.

    With --run, rows are also built and run with the inputs seen at capture, each in a process of
    its own. Exits with 1 if anything is wrong.
    """
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.verification import verify

    with late_progress() as start:
        verification = verify(folder, num_runs, jobs, seed, start)
    errors = (*verification.files, *verification.rows, *verification.runs)
    alone = f"{verification.num_alone} variants without their original; "
    summary = (
        f"{verification.num_rows} rows, {verification.num_wrong} wrong; "
        f"{alone if verification.num_alone else ''}"
        f"{len(verification.files)} errors of files; {verification.num_run} run, "
        f"{verification.num_failed} failed"
    )
    print_result(
        as_json,
        {"ok": verification.ok, "found": verification},
        [*(f"WRONG {error}" for error in errors), summary],
    )
    if not verification.ok:
        sys.exit(1)


@click.command("export")
@opt.folder
@opt.out("The folder")
@opt.choice("--layout", ["graphnet", "passnet", "hf"], "The layout: a directory for each graph "
            "(graphnet), tasks of such directories (passnet), or Parquet files with a card for "
            "Hugging Face (hf).", required=True)  # fmt: skip
@opt.option("--where", "Write only rows for which this holds; see `passnet dataset query`.",
            metavar="EXPRESSION")  # fmt: skip
@opt.question_limits
@opt.option("--name", "The name of the exported dataset.", default="subgraphs")
@opt.path("--split", "With hf, a folder of `passnet dataset split` to take splits from.")
@opt.option("--license", "The licence that the card names.", "license_name", default="mit")
@opt.json
def export_command(folder: Path, out: Path, layout: Layout, where: str | None,
                   limits: JobLimits, name: str, split: Path | None, license_name: str,
                   as_json: bool) -> None:  # fmt: skip
    """Write the rows of a dataset in a layout that others read."""
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.export import ExportPlan, export_dataset
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.splits import read_split

    if split is not None and layout != "hf":
        raise InputError("--split is for --layout hf; other layouts have no splits")
    sides = read_split(split)[1] if split is not None else {}
    plan = ExportPlan(layout, where, name, sides, license_name)
    with Dataset(folder, limits) as dataset, late_progress() as start:
        export = export_dataset(dataset, out, plan, partial(start, "writing rows"))
    unit = "files" if layout == "hf" else "directories"
    tasks = f", {export.num_tasks} tasks" if layout == "passnet" else ""
    line = f"{export.num_rows} rows as {export.num_written} {unit}{tasks}, in {out}"
    print_result(as_json, export, [line])


@click.command("import")
@opt.folder
@opt.out("The folder of the dataset")
@opt.flag("--strict", "Stop at a directory that cannot be read.")
@opt.json
def import_command(folder: Path, out: Path, strict: bool, as_json: bool) -> None:
    """Make a dataset of graph directories (GraphNet's, PassNet's), or of an exported dataset."""
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.importer import import_dataset

    with late_progress() as start:
        imported = import_dataset(folder, out, strict, partial(start, "reading graphs"))
    left_out = imported.left_out[:LEFT_OUT_SHOWN]
    summary = (
        f"{imported.num_read} graphs read, {len(imported.left_out)} left out; "
        f"{imported.dataset.num_subgraphs} rows, in {out}"
    )
    lines = [*(f"LEFT OUT {graph.path}: {graph.reason}" for graph in left_out), summary]
    print_result(as_json, imported, lines)


COMMANDS = (verify_command, export_command, import_command)
