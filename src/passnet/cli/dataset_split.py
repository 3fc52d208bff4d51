"""`passnet dataset split|leaks`: rows to train on apart from rows to evaluate on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.dataset_rows import folder_argument
from passnet.cli.output import print_json

if TYPE_CHECKING:
    from passnet.dataset.splits import Part

LEAKS_SHOWN = 20

suites_option = click.option(
    "--suite", "suite_names", multiple=True, help="Kept out of training (repeatable)."
)


@click.command("split")
@folder_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for it.")
@click.option("--share", default=0.1, show_default=True, help="Of op sequences, to evaluate on.")
@click.option("--seed", default=0, show_default=True, help="Other seeds choose others.")
@suites_option
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON instead.")
def split_command(
    folder: Path, out: Path, share: float, seed: int, suite_names: tuple[str, ...], as_json: bool
) -> None:
    """Split the rows of a dataset into train and eval, apart by op sequence.

    The side of a row follows from its op sequence, the share and the seed alone; op sequences of
    suites are on the side of eval.
    """
    from passnet.dataset.splits import split, write_split
    from passnet.records.atomic_folder import whole_folder
    from passnet.suite.suite_keys import read_suites

    suites = read_suites(suite_names)
    sides, manifest = split(_parts(folder), share, seed, suites)
    with whole_folder(out) as partial:
        manifest = write_split(partial, sides, manifest)
    if as_json:
        print_json(manifest)
        return
    counts = ", ".join(
        f"{side}: {manifest.rows[side]} rows of {manifest.sequences[side]} op sequences"
        for side in manifest.rows
    )
    click.echo(
        f"{counts}; {manifest.near_sequences} op sequences of eval are part of one of train; "
        f"in {out}"
    )


@click.command("leaks")
@folder_argument
@click.option(
    "--split", "place", required=True, type=click.Path(path_type=Path), help="Folder of the split."
)
@suites_option
@click.option("--json", "as_json", is_flag=True, help="Print the leaks as JSON instead.")
@click.pass_context
def leaks_command(
    ctx: click.Context, folder: Path, place: Path, suite_names: tuple[str, ...], as_json: bool
) -> None:
    """List rows to train on whose op sequence or structure is evaluated on.

    Exits with 1 where there are any.
    """
    from passnet.dataset.splits import leaks, read_split
    from passnet.suite.suite_keys import read_suites

    sides = read_split(place)[1]
    found = leaks(_parts(folder), sides, read_suites(suite_names))
    if as_json:
        print_json(found)
    else:
        for item in found[:LEAKS_SHOWN]:
            click.echo(f"LEAK {item.row}: {item.what} of {item.other}")
        click.echo(f"{len(found)} of {len(sides)} rows leak")
    if found:
        ctx.exit(1)


def _parts(folder: Path) -> list[Part]:
    from passnet.dataset.query import Dataset
    from passnet.dataset.splits import Part

    with Dataset(folder) as dataset:
        rows = dataset.table(columns=("full", "structure", "op_sequence")).to_pylist()
    return [Part(row["full"], row["structure"], tuple(row["op_sequence"])) for row in rows]
