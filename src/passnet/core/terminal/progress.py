"""Progress on the error stream: a bar on a terminal, elsewhere a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from passnet.core.terminal.console import open_console
from passnet.core.terminal.visible_text import visible

ProgressStep: TypeAlias = Callable[..., None]
"""Called after each item, with its name or without arguments; with `advance=0`, within one."""

LINE_EVERY_S = 30.0

WIDTH = 100
"""The most letters of a line."""


@contextmanager
def progress(title: str, total: int, every_s: float = LINE_EVERY_S) -> Iterator[ProgressStep]:
    """Show a bar with a rate and expected end; yield the function that counts an item.

    Without a terminal, or with NO_COLOR, print a line every `every_s` seconds instead, the first
    after that time.
    """
    console = open_console(stderr=True)
    if console.color_system is None:
        with _lines(title, total, every_s) as step:
            yield step
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(escape(visible(title)), total=total, now="")

        def step(now: str = "", advance: int = 1) -> None:
            bar.update(task, advance=advance, now=escape(visible(now)))

        yield step


@contextmanager
def _lines(title: str, total: int, every_s: float) -> Iterator[ProgressStep]:
    """Print a line now and then from a thread, so that even stalled work is reported."""
    start = time.monotonic()
    ended = threading.Event()
    num_done, last = 0, ""

    def step(now: str = "", advance: int = 1) -> None:
        nonlocal num_done, last
        num_done, last = num_done + advance, f"the last {now}" if now and advance else now

    def report() -> None:
        while not ended.wait(every_s) and num_done < total:
            after = f", {last}" if last else ""
            seconds = time.monotonic() - start
            text = visible(f"{title}: {num_done} of {total} after {seconds:.0f} s{after}")
            sys.stderr.write(f"{text if len(text) <= WIDTH else text[: WIDTH - 1] + '…'}\n")
            sys.stderr.flush()

    threading.Thread(target=report, name="progress", daemon=True).start()
    try:
        yield step
    finally:
        ended.set()


@contextmanager
def late_progress() -> Iterator[Callable[[str, int], ProgressStep]]:
    """Yield a function that starts a bar with a title and total; bars end with the block."""
    with ExitStack() as stack:
        yield lambda title, total: stack.enter_context(progress(title, total))


def no_progress(*_: object) -> ProgressStep:
    """Return a step that reports nothing."""
    return lambda *_: None
