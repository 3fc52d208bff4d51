"""`passnet optimize`: the fastest way to run a net, found, checked and kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import ending_at_own_errors
from passnet.cli.terminal.output import print_result, say
from passnet.errors import InputError, no_such

if TYPE_CHECKING:
    from passnet.agent.settings import LlmSettings
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.optimizer.record import BackendRecord
    from passnet.optimizer.settings import OptimizeSettings


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


class SizeInterval(click.ParamType):
    """Sizes that vary, such as batch=1..64, or input_ids:1=1..512 for an axis of one argument."""

    name = "sizes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int | None, tuple[int, int]]:
        """The name, the axis, and the least and greatest size.

        Raises:
            click.BadParameter: it is no such text.
        """
        found = re.fullmatch(r"(\w+)(?::(\d))?=(\d{1,9})\.\.(\d{1,9})", str(value))
        if not found:
            self.fail(f"{value!r} is no range of sizes; write batch=1..64.", param, ctx)
        axis = None if found[2] is None else int(found[2])
        return found[1], axis, (int(found[3]), int(found[4]))


@dataclass(frozen=True, kw_only=True)
class OptimizeOptions:
    """Options of `passnet optimize`."""

    entry: str = opt.argument(complete=opt.completion.nets)

    sizes: tuple[tuple[str, int], ...] = opt.field(
        (), option="size", type=InputSize(), metavar="AXIS=N"
    )
    """Repeat the inputs along this axis up to this size, such as batch=8."""

    dynamic: tuple[tuple[str, int | None, tuple[int, int]], ...] = opt.field(
        (), type=SizeInterval(), metavar="NAME=A..B"
    )
    """Serve all sizes from A to B: of batch (axis 0) or length (axis 1) of all inputs of the
    example's size there, or of an axis of one input, as in input_ids:1=1..512.
    """

    out: Path | None = None
    """Keep the result in this folder, for `passnet.load`."""

    settings: OptimizeSettings = opt.fields_of(
        "passnet.optimizer.settings:OptimizeSettings",
        *("budget_s", "threads", "freeze", "finite", "precision", "tolerance"),
        *("backends", "authors", "library", "seconds"),
        threads=1,
    )

    llm: str | None = opt.field(None, metavar="PROVIDER/NAME")
    """Let this LLM write passes too, as Inspect names it (openai/…, anthropic/…)."""

    llm_settings: LlmSettings = opt.llm_settings("base_urls")

    plan: RunPlan = opt.plan("resume")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command_group("optimize")
def optimize(options: OptimizeOptions) -> None:
    """Find the fastest way to run the net ENTRY that returns what eager torch does.

    ENTRY is LIBRARY/NET of the catalog, or a function of your own that returns a net and its inputs
    (path/to/file.py:function), as for `passnet extract`; its code runs in this process. Every
    backend is built, compared on fresh and hostile inputs, and timed in turns with the others; the
    net runs eagerly where nothing is faster.
    """
    from passnet.api import optimize_calls
    from passnet.core.terminal.progress import progress
    from passnet.data.capture.catalog import build_entry, resolve
    from passnet.data.capture.net import input_values
    from passnet.data.capture.recapture import axis_sizes, resized_value
    from passnet.pages.optimizer.page import PAGE_FILE
    from passnet.pages.tables.optimizer_tables import optimized_tables

    entry, out, settings = options.entry, options.out, _settings(options)
    names = resolve([entry])
    if len(names) != 1:
        raise InputError(f"{entry}: means {len(names)} nets; name one")
    tried = settings.tried()
    file = names[0].rpartition(":")[0]
    with ending_at_own_errors(file):
        net = build_entry(names[0])
    known = axis_sizes(net)
    for axis, _ in options.sizes:
        if axis not in known:
            raise InputError(f"{entry}: {no_such('axis', axis, known)}")
    inputs = input_values(net, partial(resized_value, sizes=dict(options.sizes)))
    with (
        ending_at_own_errors(file),
        progress(f"optimising {names[0]}", len(tried)) as step,
    ):

        def report(record: BackendRecord) -> None:
            step(f"{record.engine}: {record.status}")

        optimized = optimize_calls(net.module, [inputs], settings, out, options.plan.resume, report)
    record = optimized.record
    print_result(options.json, record, tables=optimized_tables(record), wide=options.wide)
    if out is not None:
        say(f"kept in {out}: passnet.load({str(out)!r}, net)", err=options.json)
        say(f"the page: {out / PAGE_FILE}", err=options.json)


def _settings(options: OptimizeOptions) -> OptimizeSettings:
    if options.llm_settings.base_urls and not options.llm:
        raise InputError("--base-url is the endpoint of an LLM; give --llm PROVIDER/NAME too")
    llm = replace(options.llm_settings, name=options.llm) if options.llm else None
    dynamic: dict[str, Any] = {}
    for name, axis, sizes in options.dynamic:
        known = dynamic.get(name, {})
        if (known and axis is None) or isinstance(known, tuple) or axis in known:
            given = name if axis is None else f"{name}:{axis}"
            raise InputError(f"--dynamic {given}: another --dynamic gives sizes of it; drop one")
        dynamic[name] = sizes if axis is None else {**known, axis: sizes}
    named = options.settings.backends or None
    return replace(options.settings, backends=named, llm=llm, dynamic=dynamic)
