"""Progress on the error stream: a bar on a terminal, elsewhere a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

ProgressStep: TypeAlias = Callable[..., None]
"""Called after each item, with its name or without arguments."""

LINE_EVERY_S = 30.0
"""How often a line says how far the work is, where no bar shows it."""


@contextmanager
def progress(
    title: str, total: int, every_s: float = LINE_EVERY_S
) -> Iterator[Callable[..., None]]:
    """A bar with a title, rate and expected end; the block gets the function that counts up to the
    total, one by one, and is told what is worked on.

    Where the error stream is no terminal there is a line every `every_s` seconds instead, the first
    after that time, so that short work prints nothing.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
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
        task = bar.add_task(title, total=total, now="")

        def step(now: str = "") -> None:
            bar.update(task, advance=1, now=now)

        yield step


@contextmanager
def _lines(title: str, total: int, every_s: float) -> Iterator[Callable[..., None]]:
    """A line now and then until all is done, from a thread of its own, so that also what stands
    still is seen to.
    """
    start = time.monotonic()
    ended = threading.Event()
    num_done, last = 0, ""

    def step(now: str = "") -> None:
        nonlocal num_done, last
        num_done, last = num_done + 1, now

    def report() -> None:
        while not ended.wait(every_s) and num_done < total:
            after = f", the last {last}" if last else ""
            seconds = time.monotonic() - start
            text = f"{title}: {num_done} of {total} after {seconds:.0f} s{after}\n"
            sys.stderr.write(text)
            sys.stderr.flush()

    threading.Thread(target=report, name="progress", daemon=True).start()
    try:
        yield step
    finally:
        ended.set()


@contextmanager
def late_progress() -> Iterator[Callable[[str, int], Callable[..., None]]]:
    """For work whose size is not known yet: the block gets a function of the title and total of a
    bar, which starts it and gives the function that counts; bars end with the block.
    """
    with ExitStack() as stack:
        yield lambda title, total: stack.enter_context(progress(title, total))


def no_progress(*_: object) -> ProgressStep:
    """Return a step that reports nothing."""
    return lambda *_: None
