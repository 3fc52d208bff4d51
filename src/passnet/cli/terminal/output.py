"""The output of commands: tables, JSON, lines of text, notes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from passnet.core.terminal.visible_text import visible

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.pages.tables.tables import Table

WIDE = 10_000
"""Columns on which every table fits."""


def print_tables(tables: Iterable[Table], wide: bool = False) -> None:
    """Print tables; columns that do not fit the terminal are hidden unless `wide`."""
    from passnet.core.terminal.console import open_console
    from passnet.pages.tables.tables import print_table

    console = open_console(width=WIDE if wide else None)
    for table in tables:
        print_table(console, table, "; --wide shows all columns")


def print_json(value: Any, indent: int = 2) -> None:
    """Print a value as JSON, in one line with an indent of -1.

    Control characters that JSON leaves as they are, and that terminals obey, are escaped.
    """
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()
    text = re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.buffer.flush()


def say(text: str, err: bool = False) -> None:
    """Print a line; names and texts of strangers in it cannot steer the terminal."""
    click.echo(visible(text), err=err)


def print_result(
    as_json: bool,
    value: Any,
    lines: Iterable[str] = (),
    tables: Sequence[Table] = (),
    wide: bool = False,
) -> None:
    """Print a result: a value as JSON, or else tables and lines of text that say the same."""
    if as_json:
        print_json(value)
        return
    if tables:
        print_tables(tables, wide)
    for line in lines:
        say(line)


def print_notes(notes: Iterable[str], sandbox: Sandbox | None = None) -> None:
    """Print distinct notes on the error stream, and one if `sandbox` is none."""
    unconfined = []
    if sandbox is not None and sandbox.name == "none":
        unconfined = [f"candidate code runs without a sandbox: {sandbox.reason}"]
    for note in dict.fromkeys([*notes, *unconfined]):
        say(f"note: {note}", err=True)
