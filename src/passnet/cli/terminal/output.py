"""The output of commands: tables, JSON, lines of text, notes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from passnet.core.terminal.visible_text import visible

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.pages.tables.tables import Table

MAX_WIDTH = 100
"""Most columns of a table."""

LONG_COLUMN = 24
"""Fewest letters of a column whose cells fold."""


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables; one that is wider than the terminal, or `MAX_WIDTH`, comes in blocks."""
    from rich.console import Console

    from passnet.pages.tables.tables import print_table

    console = Console()
    width = min(console.width, MAX_WIDTH) if console.is_terminal else MAX_WIDTH
    console = Console(width=width)
    for table in tables:
        for block in fitting_blocks(table, width):
            print_table(console, block)


def fitting_blocks(table: Table, width: int) -> Iterator[Table]:
    """Divide a table into tables that fit a width; the first column is in all of them."""
    from passnet.pages.tables.tables import SHORT_CELL, Table

    columns = list(zip(table.heads, *table.rows, strict=True))
    lengths = [max(map(len, column)) for column in columns]
    widths = [length if length <= SHORT_CELL else LONG_COLUMN for length in lengths]
    blocks: list[list[int]] = [[0]]
    for index, needed in enumerate(widths[1:], start=1):
        used = 1 + sum(widths[column] + 3 for column in blocks[-1])
        if used + needed + 3 > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(index)
    for number, block in enumerate(blocks):
        yield Table(
            table.title if number == 0 else "",
            tuple(table.heads[index] for index in block),
            [tuple(row[index] for index in block) for row in table.rows],
            table.note if number == len(blocks) - 1 else "",
        )


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()


def say(text: str, err: bool = False) -> None:
    """Print a line; names and texts of strangers in it cannot steer the terminal."""
    click.echo(visible(text), err=err)


def print_result(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print a result: a value as JSON, or else lines of text that say the same."""
    if as_json:
        print_json(value)
    else:
        for line in lines:
            say(line)


def print_notes(notes: Iterable[str], sandbox: Sandbox | None = None) -> None:
    """Print distinct notes on the error stream, and one if `sandbox` is none."""
    unconfined = []
    if sandbox is not None and sandbox.name == "none":
        unconfined = [f"candidate code runs without a sandbox: {sandbox.reason}"]
    for note in dict.fromkeys([*notes, *unconfined]):
        say(f"note: {note}", err=True)
