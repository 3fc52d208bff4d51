"""`passnet dataset split|leaks`: rows to train on apart from rows to evaluate on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import options as opt
from passnet.cli.output import print_result

if TYPE_CHECKING:
    from passnet.data.dataset.splits import RowKeys

LEAKS_SHOWN = 20

suites_option = opt.suites("--suite", "A suite to keep out of training (repeatable).",
                           "suite_names")  # fmt: skip


@click.command("split")
@opt.folder
@opt.out("The folder of the split")
@opt.share("--share", "The share of op sequences to evaluate on, from 0 to below 1.", default=0.1)
@opt.number("--seed", "Seed of the choice of op sequences.", default=0)
@suites_option
@opt.json
def split_command(
    folder: Path, out: Path, share: float, seed: int, suite_names: tuple[str, ...], as_json: bool
) -> None:
    """Split the rows of a dataset into train and eval, apart by op sequence.

    The side of a row follows from its op sequence, the share and the seed alone, so that a variant
    is on the side of its original; op sequences of the suites are always on the side of eval.
    """
    from passnet.core.records.folders import atomic_folder
    from passnet.data.dataset.splits import split, write_split
    from passnet.judge.suite.suite_keys import read_suite_keys

    sides, manifest = split(_parts(folder), share, seed, read_suite_keys(suite_names))
    with atomic_folder(out) as partial:
        manifest = write_split(partial, sides, manifest)
    counts = ", ".join(
        f"{side}: {manifest.rows[side]} rows of {manifest.sequences[side]} op sequences"
        for side in manifest.rows
    )
    line = (
        f"{counts}; {manifest.near_sequences} op sequences of eval are part of one of train; "
        f"in {out}"
    )
    print_result(as_json, manifest, [line])


@click.command("leaks")
@opt.folder
@opt.path("--split", "A folder made by `passnet dataset split`.", "split_folder", required=True)
@suites_option
@opt.json
def leaks_command(
    folder: Path, split_folder: Path, suite_names: tuple[str, ...], as_json: bool
) -> None:
    """List the rows to train on whose op sequence, structure, original or variant is evaluated on.

    Exits with 1 if there are any.
    """
    from passnet.data.dataset.splits import leaks, read_split
    from passnet.judge.suite.suite_keys import read_suite_keys

    sides = read_split(split_folder)[1]
    leaking = leaks(_parts(folder), sides, read_suite_keys(suite_names))
    lines = [f"LEAK {leak.row}: {leak.what} of {leak.other}" for leak in leaking[:LEAKS_SHOWN]]
    print_result(as_json, leaking, [*lines, f"{len(leaking)} of {len(sides)} rows leak"])
    if leaking:
        sys.exit(1)


def _parts(folder: Path) -> list[RowKeys]:
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.splits import RowKeys

    with Dataset(folder) as dataset:
        rows = dataset.table(columns=("full", "structure", "op_sequence", "original")).to_pylist()
    return [
        RowKeys(row["full"], row["structure"], tuple(row["op_sequence"]), row["original"])
        for row in rows
    ]


COMMANDS = (split_command, leaks_command)
