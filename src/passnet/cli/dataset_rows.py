"""`passnet dataset query|stats|show`: what a dataset holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from passnet.core.jobs.process import JobLimits

ROWS_SHOWN = 20
NAME_CHARACTERS = 16
"""Of a fingerprint in a table; `passnet dataset show` takes as many."""

MAX_CANDIDATES = 10
JSON_COLUMNS = ("tensors", "places")


@click.command("query")
@opt.folder
@click.argument("where", required=False)
@opt.option("--columns",
            "The columns to print, with commas between, or all; the main ones if not given.",
            metavar="NAMES")  # fmt: skip
@opt.number("--limit", f"The most rows to print; else {ROWS_SHOWN} in a table, or all.")
@opt.question_limits
@opt.json
@opt.flag("--csv", "Print the result as CSV.", "as_csv")
def query_command(folder: Path, where: str | None, columns: str | None, limit: int | None,
                  limits: JobLimits, as_json: bool, as_csv: bool) -> None:  # fmt: skip
    """Print the rows of a dataset for which WHERE is true; all rows without it.

    WHERE is an expression of SQL over the columns, as DuckDB understands it:
    "'fusible' in kinds and num_ops between 4 and 16 and domain = 'nlp'". The column full must be
    written in double quotes.
    """
    from passnet.data.dataset.query import BRIEF, COLUMNS, Dataset

    if as_json and as_csv:
        raise InputError("give --json or --csv, not both")
    names: tuple[str, ...] = BRIEF
    if columns is not None:
        names = COLUMNS if columns == "all" else tuple(columns.replace(" ", "").split(","))
    if limit is None and not (as_json or as_csv):
        limit = ROWS_SHOWN
    with Dataset(folder, limits) as dataset:
        table = dataset.table(where, names, limit)
        if as_json:
            print_json([_as_json(row) for row in table.to_pylist()])
        elif as_csv:
            _print_csv(table)
        else:
            _print_rows(table, dataset.count(where))


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    from passnet.core.records.serialise import decode

    return {
        name: decode(value, list, name) if name in JSON_COLUMNS else value
        for name, value in row.items()
    }


def _print_csv(table: pa.Table) -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow(
            " ".join(value) if isinstance(value, list) else value for value in row.values()
        )


def _print_rows(table: pa.Table, total: int) -> None:
    from passnet.pages.tables.tables import Table

    rows = [tuple(_cell(*cell) for cell in row.items()) for row in table.to_pylist()]
    note = f"{table.num_rows} of {total} rows that match"
    print_tables([Table("Rows", tuple(table.column_names), rows, note)])


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    is_fingerprint = name in ("full", "literals", "structure", "original")
    return value[:NAME_CHARACTERS] if is_fingerprint else str(value)


@click.command("stats")
@opt.folder
@opt.json
@opt.path("--page", "A file to write the numbers to as a page of Markdown, its figure beside it.")
def stats_command(folder: Path, as_json: bool, page: Path | None) -> None:
    """Count the rows of a dataset by kind, domain, dtype and variant, their ops and places."""
    from passnet.core.records.serialise import write_text
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.stats import stats
    from passnet.pages.tables.dataset import draw_stats, stats_page, stats_tables

    with Dataset(folder) as dataset:
        numbers = stats(dataset)
    if page is not None:
        figure = page.with_suffix(".svg")
        draw_stats(numbers, figure)
        write_text(page, stats_page(numbers, figure.name))
        click.echo(f"written: {page}, {figure}")
    elif as_json:
        print_json(numbers)
    else:
        print_tables(stats_tables(numbers))


@click.command("show")
@opt.folder
@click.argument("fingerprint")
@opt.json
def show_command(folder: Path, fingerprint: str, as_json: bool) -> None:
    """Print one row: its text, arguments, places and nets.

    FINGERPRINT is the full fingerprint of the row, or its first characters.
    """
    from passnet.data.dataset.query import COLUMNS, Dataset
    from passnet.pages.tables.dataset import row_tables

    if not fingerprint or not {*fingerprint} <= {*"0123456789abcdef"}:
        raise InputError(f"{fingerprint!r} is not the beginning of a fingerprint (0 to 9, a to f)")
    where = f"\"full\" LIKE '{fingerprint}%'"
    with Dataset(folder) as dataset:
        names = dataset.table(where, ("full",), MAX_CANDIDATES + 1).column("full").to_pylist()
        if not names:
            raise InputError(f"{folder}: no row has a fingerprint that begins with {fingerprint}")
        if len(names) > 1:
            more = ", …" if len(names) > MAX_CANDIDATES else ""
            first = ", ".join(name[:NAME_CHARACTERS] for name in names[:MAX_CANDIDATES])
            raise InputError(
                f"several fingerprints begin with {fingerprint}: {first}{more}; give more of it"
            )
        if as_json:
            print_json(_as_json(dataset.table(where, COLUMNS).to_pylist()[0]))
            return
        [row] = dataset.rows(where)
    print_tables(row_tables(row))
    click.echo(row.program)


COMMANDS = (query_command, stats_command, show_command)
