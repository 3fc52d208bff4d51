"""`passnet dataset verify|split|leaks`: a dataset checked and split."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.data.dataset.splits import RowKeys

MOST_SHOWN = 20
"""Most leaks that are printed."""


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
    process; those that do not end in time are not run. Exits with 1 if anything is wrong.
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
        f"{f', {verification.num_not_run} not run' if verification.num_not_run else ''}"
    )
    facts = {"ok": verification.ok, "found": verification}
    lines = [f"WRONG {error}" for error in errors]
    lines += [f"not run {text}" for text in verification.not_run]
    print_result(options.json, facts, [*lines, summary])
    if not verification.ok:
        sys.exit(1)


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


COMMANDS = (verify_command, split_command, leaks_command)
