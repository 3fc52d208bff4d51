"""`passnet optimize`: the fastest way to run a net, found, checked and kept."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_tables
from passnet.errors import InputError

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class TimeSpan(click.ParamType):
    """Seconds, also written as 90s, 10m or 1h."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds.

        Raises:
            click.BadParameter: it is no such text, or nothing.
        """
        found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smh]?)", str(value).strip())
        seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no duration; write 90s, 10m or 1h.", param, ctx)
        return seconds


class InputSize(click.ParamType):
    """The size of a named axis, such as batch=8."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """The axis and its size.

        Raises:
            click.BadParameter: it is no such text, or the size is 0.
        """
        found = re.fullmatch(r"(\w+)=(\d{1,9})", str(value))
        if not found or not int(found[2]):
            self.fail(f"{value!r} is no size of an axis; write batch=8.", param, ctx)
        return found[1], int(found[2])


@click.command()
@click.argument("entry")
@opt.option("--size", "Repeat the inputs along this axis up to this size (repeatable): batch=8.",
            "sizes", multiple=True, type=InputSize(), metavar="AXIS=N")  # fmt: skip
@opt.path("--out", "A folder to keep the result in, for `passnet.load`.")
@opt.option("--budget", "Begin no further way after this time.", type=TimeSpan(), default="10m")
@opt.count("--threads", "Threads of torch.", default=1)
@opt.flag(
    "--freeze", "Weights will not change: do not compare those that are folded in at each call."
)
@opt.flag("--finite", "Take arguments as finite: what NaN in them leads to is not compared.")
@opt.option("--engine", "Try this way (repeatable); all that fit by default.", "engines",
            multiple=True, metavar="NAME")  # fmt: skip
@opt.option("--author", "Let this author give passes for ranges of the net (repeatable): library, "
            "compiler, search, trained:FOLDER.", "authors", multiple=True,
            metavar="NAME")  # fmt: skip
@opt.option("--llm", "Let this llm write passes too, as Inspect names it (openai/…, anthropic/…).",
            metavar="PROVIDER/NAME")  # fmt: skip
@opt.option("--base-url", "The OpenAI-compatible endpoint to ask, if not the provider's own.",
            metavar="URL")  # fmt: skip
@opt.path("--library", "The folder of the library of passes; the user's own by default.")
@opt.amount("--seconds", "Time each way for about so long.", default=2.0)
@opt.resume
@opt.json
def optimize(entry: str, sizes: tuple[tuple[str, int], ...], out: Path | None, budget: float,
             threads: int, freeze: bool, finite: bool, engines: tuple[str, ...],
             authors: tuple[str, ...], llm: str | None, base_url: str | None,
             library: Path | None, seconds: float, resume: bool,
             as_json: bool) -> None:  # fmt: skip
    """Find the fastest way to run the net ENTRY that returns what eager torch does.

    ENTRY is LIBRARY/NET of the catalog, or a function of your own that returns a net and its inputs
    (path/to/file.py:function), as for `passnet extract`; its code runs in this process. Every way
    is built, compared on fresh and hostile inputs, and timed in turns with the others; the net runs
    eagerly where nothing is faster.
    """
    from passnet.agent.settings import LlmSettings
    from passnet.api import optimize_calls
    from passnet.core.terminal.progress import progress
    from passnet.data.capture.catalog import build_entry
    from passnet.data.capture.catalog.selection import resolve
    from passnet.data.capture.net import input_values
    from passnet.data.capture.recapture import axis_sizes, resized_value
    from passnet.optimizer.record import EngineRecord
    from passnet.optimizer.settings import OptimizeSettings
    from passnet.pages.optimizer.page import PAGE_FILE
    from passnet.pages.tables.optimizer_tables import optimized_tables

    if base_url and not llm:
        raise InputError("--base-url says where an llm is asked; give --llm PROVIDER/NAME too")
    settings = OptimizeSettings(
        freeze, finite, budget, threads, seconds, engines or None, authors,
        str(library) if library else None, LlmSettings(llm, base_url) if llm else None,
    )  # fmt: skip
    names = resolve([entry])
    if len(names) != 1:
        raise InputError(f"{entry}: means {len(names)} nets; name one")
    tried = settings.tried()
    net = build_entry(names[0])
    known = axis_sizes(net)
    for axis, _ in sizes:
        if axis not in known:
            raise InputError(
                f"{entry}: no input has an axis {axis}; name one of {', '.join(known) or 'none'}"
            )
    inputs = input_values(net, partial(resized_value, sizes=dict(sizes)))
    with progress(f"optimising {names[0]}", len(tried)) as step:

        def told(record: EngineRecord) -> None:
            step(f"{record.engine}: {record.status}")

        optimized = optimize_calls(net.module, [inputs], settings, out, resume, told)
    if as_json:
        print_json(optimized.record)
    else:
        print_tables(optimized_tables(optimized.record))
    if out is not None:
        click.echo(f"kept in {out}: passnet.load({str(out)!r}, net)", err=as_json)
        click.echo(f"the page: {out / PAGE_FILE}", err=as_json)
