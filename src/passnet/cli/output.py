"""What commands print: tables, JSON, lines of text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.pages.tables.tables import Table

TABLE_WIDTH = 150
"""Columns of a table that goes to a file or a pipe."""


def print_tables(tables: Iterable[Table]) -> None:
    """Tables, as wide as the terminal, or as `TABLE_WIDTH`."""
    from rich.console import Console

    from passnet.pages.tables.tables import print_table

    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    for table in tables:
        print_table(console, table)


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()


def print_result(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """A result: a value as JSON, or else lines of text that say the same."""
    if as_json:
        print_json(value)
    else:
        for line in lines:
            click.echo(line)


def print_notes(notes: Iterable[str], sandbox: Sandbox | None = None) -> None:
    """Notes on the error stream, each once; and one if a sandbox is given that confines nothing."""
    unconfined = []
    if sandbox is not None and sandbox.name == "none":
        unconfined = [f"candidate code is not confined: {sandbox.reason}"]
    for note in dict.fromkeys([*notes, *unconfined]):
        click.echo(f"note: {note}", err=True)
