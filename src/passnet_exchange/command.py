"""`passnet dataset export|import`: datasets in the formats of other projects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.process import JobLimits

MOST_SHOWN = 20
"""Most directories left out that are printed."""


@dataclass(frozen=True, kw_only=True)
class DatasetExportOptions:
    """Options of `passnet dataset export`."""

    folder: Path = opt.argument()

    out: Path
    """Write the rows to this folder."""

    layout: Literal["graphnet", "passnet", "hf"]
    """Write a directory for each graph (graphnet), tasks of such directories (passnet), or Parquet
    files with a card for Hugging Face (hf).
    """

    where: str | None = opt.field(None, metavar="EXPRESSION")
    """Write only rows for which this is true; see `passnet dataset query`."""

    source_licenses: tuple[str, ...] = opt.shared("source_licenses")

    limits: JobLimits = opt.job_limits(120.0)

    name: str = "subgraphs"
    """Give the exported dataset this name."""

    split: Path | None = None
    """With --layout hf, take splits from this folder of `passnet dataset split`."""

    license: str = "mit"
    """Name this licence on the card."""

    json: bool = opt.shared("json")


@opt.command("export")
def export_command(options: DatasetExportOptions) -> None:
    """Write the rows of a dataset in a layout that others read."""
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.splits import read_split
    from passnet_exchange.export import ExportPlan, export_dataset

    layout, out = options.layout, options.out
    if options.split is not None and layout != "hf":
        raise InputError("--split is for --layout hf; other layouts have no splits")
    sides = read_split(options.split)[1] if options.split is not None else {}
    plan = ExportPlan(
        layout, options.where, options.source_licenses, options.name, sides, options.license
    )
    with Dataset(options.folder, options.limits) as dataset, late_progress() as start:
        export = export_dataset(dataset, out, plan, partial(start, "writing rows"))
    unit = "files" if layout == "hf" else "directories"
    tasks = f", {export.num_tasks} tasks" if layout == "passnet" else ""
    line = f"{export.num_rows} rows as {export.num_written} {unit}{tasks}, in {out}"
    print_result(options.json, export, [line])


@dataclass(frozen=True, kw_only=True)
class DatasetImportOptions:
    """Options of `passnet dataset import`."""

    folder: Path = opt.argument()

    out: Path
    """Write the dataset to this folder."""

    strict: bool = False
    """Stop at a directory that cannot be read."""

    json: bool = opt.shared("json")


@opt.command("import")
def import_command(options: DatasetImportOptions) -> None:
    """Make a dataset of graph directories (GraphNet's, PassNet's), or of an exported dataset."""
    from passnet.core.terminal.progress import late_progress
    from passnet_exchange.importer import import_dataset

    with late_progress() as start:
        report = partial(start, "reading graphs")
        imported = import_dataset(options.folder, options.out, options.strict, report)
    left_out = imported.left_out[:MOST_SHOWN]
    summary = (
        f"{imported.num_read} graphs read, {len(imported.left_out)} left out; "
        f"{imported.dataset.num_subgraphs} rows, in {options.out}"
    )
    lines = [*(f"LEFT OUT {graph.path}: {graph.reason}" for graph in left_out), summary]
    print_result(options.json, imported, lines)
