"""A progress bar on the terminal's error stream; silent where that is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar with a title, rate and expected end; the block gets the function that counts up to the
    total, one by one, and is told what is worked on.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total, now="")

        def step(now: str = "") -> None:
            bar.update(task, advance=1, now=now)

        yield step


@contextmanager
def late_progress() -> Iterator[Callable[[str, int], Callable[..., None]]]:
    """For work whose size is not known yet: the block gets a function of the title and total of a
    bar, which starts it and gives the function that counts; bars end with the block.
    """
    with ExitStack() as stack:
        yield lambda title, total: stack.enter_context(progress(title, total))
