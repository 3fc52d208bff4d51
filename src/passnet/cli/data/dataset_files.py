"""`passnet dataset verify|export|import|split|leaks`: a dataset checked, converted and split."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.process import JobLimits
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.data.dataset.splits import RowKeys

MOST_SHOWN = 20
"""Most directories left out, or leaks, that are printed."""


@dataclass(frozen=True, kw_only=True)
class DatasetVerifyOptions:
    """Options of `passnet dataset verify`."""

    folder: Path = opt.argument()

    run: int = 0
    """Build and run this many rows."""

    seed: int = opt.shared("seed")

    plan: RunPlan = opt.plan("num_workers")

    json: bool = opt.shared("json")


@opt.command("verify")
def verify_command(options: DatasetVerifyOptions) -> None:
    """Check a dataset: its files against the manifest, every row against its text, and every
    variant against its original.

    With --run, rows are also built and run with the inputs seen at capture, each in its own
    process. Exits with 1 if anything is wrong.
    """
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.verification import verify

    with late_progress() as start:
        verification = verify(
            options.folder, options.run, options.plan.num_workers, options.seed, start
        )
    errors = (*verification.files, *verification.rows, *verification.runs)
    alone = f"{verification.num_alone} variants without their original; "
    summary = (
        f"{verification.num_rows} rows, {verification.num_wrong} wrong; "
        f"{alone if verification.num_alone else ''}"
        f"{len(verification.files)} errors of files; {verification.num_run} run, "
        f"{verification.num_failed} failed"
    )
    facts = {"ok": verification.ok, "found": verification}
    print_result(options.json, facts, [*(f"WRONG {error}" for error in errors), summary])
    if not verification.ok:
        sys.exit(1)


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
    from passnet.data.dataset.layouts.export import ExportPlan, export_dataset
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.splits import read_split

    layout, out = options.layout, options.out
    if options.split is not None and layout != "hf":
        raise InputError("--split is for --layout hf; other layouts have no splits")
    sides = read_split(options.split)[1] if options.split is not None else {}
    plan = ExportPlan(layout, options.where, options.name, sides, options.license)
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
    from passnet.data.dataset.layouts.importer import import_dataset

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


@dataclass(frozen=True, kw_only=True)
class DatasetSplitOptions:
    """Options of `passnet dataset split`."""

    folder: Path = opt.argument()

    out: Path
    """Write the split to this folder."""

    share: float = opt.field(0.1, least=0, below=1)
    """Evaluate on this share of op sequences, from 0 to below 1."""

    seed: int = opt.shared("seed")

    evaluation: tuple[str, ...] = opt.shared("evaluation")

    json: bool = opt.shared("json")


@opt.command("split")
def split_command(options: DatasetSplitOptions) -> None:
    """Split the rows of a dataset into train and eval, apart by op sequence.

    The side of a row follows from its op sequence, the share and the seed alone, so that a variant
    is on the side of its original; op sequences of --eval are always on the side of eval.
    """
    from passnet.core.records.folders import atomic_folder
    from passnet.data.dataset.splits import split, write_split
    from passnet.judge.suite.suite import read_suite_keys

    keys = read_suite_keys(options.evaluation)
    sides, manifest = split(_row_keys(options.folder), options.share, options.seed, keys)
    with atomic_folder(options.out) as folder:
        manifest = write_split(folder, sides, manifest)
    counts = ", ".join(
        f"{side}: {manifest.rows[side]} rows of {manifest.sequences[side]} op sequences"
        for side in manifest.rows
    )
    line = (
        f"{counts}; {manifest.near_sequences} op sequences of eval are part of one of train; "
        f"in {options.out}"
    )
    print_result(options.json, manifest, [line])


@dataclass(frozen=True, kw_only=True)
class DatasetLeaksOptions:
    """Options of `passnet dataset leaks`."""

    folder: Path = opt.argument()

    split: Path
    """Check this folder of `passnet dataset split`."""

    evaluation: tuple[str, ...] = opt.shared("evaluation")

    json: bool = opt.shared("json")


@opt.command("leaks")
def leaks_command(options: DatasetLeaksOptions) -> None:
    """List the rows to train on whose op sequence, structure, original or variant is evaluated on.

    Exits with 1 if there are any.
    """
    from passnet.data.dataset.splits import leaks, read_split
    from passnet.judge.suite.suite import read_suite_keys

    sides = read_split(options.split)[1]
    leaking = leaks(_row_keys(options.folder), sides, read_suite_keys(options.evaluation))
    lines = [f"LEAK {leak.row}: {leak.what} of {leak.other}" for leak in leaking[:MOST_SHOWN]]
    print_result(options.json, leaking, [*lines, f"{len(leaking)} of {len(sides)} rows leak"])
    if leaking:
        sys.exit(1)


def _row_keys(folder: Path) -> list[RowKeys]:
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.splits import RowKeys

    with Dataset(folder) as dataset:
        rows = dataset.table(columns=("full", "structure", "op_sequence", "original")).to_pylist()
    return [
        RowKeys(row["full"], row["structure"], tuple(row["op_sequence"]), row["original"])
        for row in rows
    ]


COMMANDS = (verify_command, export_command, import_command, split_command, leaks_command)
