"""Rich's console on a stream, which writes no escape sequence where NO_COLOR is set."""

import os

from rich.console import Console

PIPE_WIDTH = 120
"""Columns of what is printed where there is no terminal, and no COLUMNS."""


def open_console(stderr: bool = False, width: int | None = None) -> Console:
    """Return a console on standard output or the error stream, as wide as its terminal."""
    console = Console(
        stderr=stderr, width=width, color_system=None if os.environ.get("NO_COLOR") else "auto"
    )
    if width is None and not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console
