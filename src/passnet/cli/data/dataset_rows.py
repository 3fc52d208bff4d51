"""`passnet dataset query|stats|show`: the rows of a dataset and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_json, print_result, print_tables, say
from passnet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from passnet.core.jobs.process import JobLimits

ROWS_SHOWN = 20
NAME_CHARACTERS = 16
"""Letters of a fingerprint in a table; `passnet dataset show` takes as many."""

MAX_CANDIDATES = 10
JSON_COLUMNS = ("tensors", "places")


@dataclass(frozen=True, kw_only=True)
class DatasetQueryOptions:
    """Options of `passnet dataset query`."""

    folder: Path = opt.argument()

    where: str | None = opt.argument(required=False)

    columns: str | None = opt.field(None, metavar="NAMES")
    """Print these columns, with commas between, or all; the main ones by default."""

    limit: int | None = opt.field(None, least=0)
    """Print at most this many rows; by default 20 in a table, or all."""

    source_licenses: tuple[str, ...] = opt.shared("source_licenses")

    limits: JobLimits = opt.job_limits(120.0)

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")

    csv: bool = False
    """Print the result as CSV."""


@opt.command("query")
def query_command(options: DatasetQueryOptions) -> None:
    """Print the rows of a dataset for which WHERE is true; all rows without it.

    WHERE is an expression of SQL over the columns, as DuckDB understands it:
    "'fusible' in kinds and num_ops between 4 and 16 and domain = 'nlp'". Write the column full in
    double quotes.
    """
    from passnet.data.dataset.query import BRIEF, QUERIED, Dataset

    if options.json and options.csv:
        raise InputError("give --json or --csv, not both")
    columns, limit = options.columns, options.limit
    where, licences = options.where, options.source_licenses
    names: tuple[str, ...] = BRIEF
    if columns is not None:
        names = QUERIED if columns == "all" else tuple(columns.replace(" ", "").split(","))
    if limit is None and not (options.json or options.csv):
        limit = ROWS_SHOWN
    with Dataset(options.folder, options.limits) as dataset:
        table = dataset.table(where, names, limit, licences)
        if options.json:
            print_json([_as_json(row) for row in table.to_pylist()])
        elif options.csv:
            _print_csv(table)
        else:
            _print_rows(table, dataset.count(where, licences), options.wide)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    from passnet.core.records.serialise import decode

    return {
        name: decode(value, list, name) if name in JSON_COLUMNS else value
        for name, value in row.items()
    }


def _print_csv(table: pa.Table) -> None:
    import csv
    import sys

    from passnet.core.terminal.visible_text import visible

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        values = (" ".join(cell) if isinstance(cell, list) else cell for cell in row.values())
        writer.writerow(visible(cell) if isinstance(cell, str) else cell for cell in values)


def _print_rows(table: pa.Table, total: int, wide: bool) -> None:
    from passnet.pages.tables.tables import Table

    rows = [tuple(_cell(*cell) for cell in row.items()) for row in table.to_pylist()]
    note = f"{table.num_rows} of {total} rows that match"
    print_tables([Table("Rows", tuple(table.column_names), rows, note)], wide)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    is_fingerprint = name in ("full", "literals", "structure", "original")
    return value[:NAME_CHARACTERS] if is_fingerprint else str(value)


@dataclass(frozen=True, kw_only=True)
class DatasetStatsOptions:
    """Options of `passnet dataset stats`."""

    folder: Path = opt.argument()

    page: Path | None = opt.shared("page")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("stats")
def stats_command(options: DatasetStatsOptions) -> None:
    """Count the rows of a dataset by kind, domain, dtype and variant, their ops and places."""
    from passnet.core.records.serialise import write_text
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.stats import stats
    from passnet.pages.tables.dataset import draw_stats, stats_page, stats_tables

    with Dataset(options.folder) as dataset:
        numbers = stats(dataset)
    if options.page is not None:
        figure = options.page.with_suffix(".svg")
        draw_stats(numbers, figure)
        write_text(options.page, stats_page(numbers, figure.name))
        say(f"written: {options.page}, {figure}", err=options.json)
    if options.json or options.page is None:
        print_result(options.json, numbers, tables=stats_tables(numbers), wide=options.wide)


@dataclass(frozen=True, kw_only=True)
class DatasetShowOptions:
    """Options of `passnet dataset show`."""

    folder: Path = opt.argument()

    fingerprint: str = opt.argument()

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("show")
def show_command(options: DatasetShowOptions) -> None:
    """Print one row: its text, arguments, places and nets.

    FINGERPRINT is the full fingerprint of the row, or its first characters.
    """
    from passnet.data.dataset.query import COLUMNS, Dataset
    from passnet.pages.tables.dataset import row_tables

    folder, fingerprint = options.folder, options.fingerprint
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
        if options.json:
            print_json(_as_json(dataset.table(where, COLUMNS).to_pylist()[0]))
            return
        [row] = dataset.rows(where)
    print_tables(row_tables(row), options.wide)
    say(row.program)


COMMANDS = (query_command, stats_command, show_command)
