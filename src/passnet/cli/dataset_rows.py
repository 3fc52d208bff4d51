"""`passnet dataset query|stats|show`: what a dataset holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli.output import print_json, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SHOWN = 20
NAME_CHARACTERS = 16
"""Of a fingerprint in a table; `passnet dataset show` takes as many."""

MAX_CANDIDATES = 10
JSON_COLUMNS = ("tensors", "places")

folder_argument = click.argument("folder", type=click.Path(path_type=Path))


@click.command("query")
@folder_argument
@click.argument("where", required=False)
@click.option("--columns", help="Names with commas between, or all; else the most telling ones.")
@click.option(
    "--limit", type=click.IntRange(min=0), help=f"Rows; in a table {ROWS_SHOWN}, else all."
)
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON instead.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all rows as CSV instead.")
def query_command(
    folder: Path,
    where: str | None,
    columns: str | None,
    limit: int | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Print the rows of a dataset for which WHERE is true.

    WHERE is an expression of SQL over the columns, as DuckDB understands it:
    "'fusible' in kinds and num_ops between 4 and 16 and domain = 'nlp'". The column full is
    written with quotes.
    """
    from passnet.dataset.query import BRIEF, COLUMNS, Dataset

    if as_json and as_csv:
        raise InputError("--json or --csv, not both")
    names: tuple[str, ...] = BRIEF
    if columns is not None:
        names = COLUMNS if columns == "all" else tuple(columns.replace(" ", "").split(","))
    if limit is None and not (as_json or as_csv):
        limit = ROWS_SHOWN
    with Dataset(folder) as dataset:
        found = dataset.table(where, names, limit)
        if as_json:
            print_json([_as_json(item) for item in found.to_pylist()])
        elif as_csv:
            _print_csv(found)
        else:
            _print_rows(found, dataset.count(where))


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    from passnet.records.serialise import decode

    return {
        name: decode(value, list, name) if name in JSON_COLUMNS else value
        for name, value in row.items()
    }


def _print_csv(found: pa.Table) -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(found.column_names)
    for row in found.to_pylist():
        writer.writerow(
            " ".join(value) if isinstance(value, list) else value for value in row.values()
        )


def _print_rows(found: pa.Table, total: int) -> None:
    from passnet.report.tables import Table

    table = Table(
        "Rows", tuple(found.column_names), note=f"{found.num_rows} of {total} rows that match"
    )
    for row in found.to_pylist():
        table.rows.append(tuple(_cell(name, value) for name, value in row.items()))
    print_tables([table])


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if name in ("full", "literals", "structure", "original"):
        return value[:NAME_CHARACTERS]
    return str(value)


@click.command("stats")
@folder_argument
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON instead.")
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    help="Write a page of Markdown here, and its figure beside it, instead.",
)
def stats_command(folder: Path, as_json: bool, page: Path | None) -> None:
    """Count the rows of a dataset by kind, domain, dtype and variant, their ops and places."""
    from passnet.dataset.query import Dataset
    from passnet.dataset.stats import stats
    from passnet.report.dataset import draw_stats, stats_page, stats_tables

    with Dataset(folder) as dataset:
        found = stats(dataset)
    if page is not None:
        figure = page.with_suffix(".svg")
        try:
            draw_stats(found, figure)
            page.write_text(stats_page(found, figure.name), encoding="utf-8")
        except OSError as cause:
            raise InputError(f"{page}: cannot be written: {cause.strerror}") from cause
        click.echo(f"written: {page}, {figure}")
    elif as_json:
        print_json(found)
    else:
        print_tables(stats_tables(found))


@click.command("show")
@folder_argument
@click.argument("fingerprint")
@click.option("--json", "as_json", is_flag=True, help="Print the row as JSON instead.")
def show_command(folder: Path, fingerprint: str, as_json: bool) -> None:
    """Print one row: its text, arguments, places and nets.

    FINGERPRINT is the full fingerprint of the row, or the first of it.
    """
    from passnet.dataset.query import COLUMNS, Dataset
    from passnet.report.dataset import row_tables

    if not fingerprint or not {*fingerprint} <= {*"0123456789abcdef"}:
        raise InputError(f"{fingerprint!r} is no first part of a fingerprint (0 to 9, a to f)")
    where = f"\"full\" LIKE '{fingerprint}%'"
    with Dataset(folder) as dataset:
        names = dataset.table(where, ("full",), MAX_CANDIDATES + 1).column("full").to_pylist()
        if not names:
            raise InputError(f"{folder}: no row has a fingerprint that begins with {fingerprint}")
        if len(names) > 1:
            more = ", …" if len(names) > MAX_CANDIDATES else ""
            found = ", ".join(name[:NAME_CHARACTERS] for name in names[:MAX_CANDIDATES])
            raise InputError(f"{fingerprint} begins several fingerprints: {found}{more}; give more")
        if as_json:
            print_json(_as_json(dataset.table(where, COLUMNS).to_pylist()[0]))
            return
        [row] = dataset.rows(where)
    print_tables(row_tables(row))
    click.echo(row.program)
