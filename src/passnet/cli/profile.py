"""`passnet profile`: where the time of compiled calls goes, on many subgraphs or nets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_notes, print_result, say
from passnet.core.terminal.counts import counted
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.bench.profiling.record import ProfileRecord, ProfileSettings, ProfileSubject
    from passnet.core.jobs.run_plan import RunPlan

MAX_LEFT_OUT = 0.05

SHOWING = {"--page", "--json", "--wide"}
"""Options that apply to finished profiles, without --out."""


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """Options of `passnet profile`."""

    words: tuple[str, ...] = opt.argument(nargs=-1, metavar="WHAT...", complete=opt.completion.nets)

    out: Path | None = None
    """Write the profiles to this folder; without it, WHAT are such folders, and their tables are
    printed.
    """

    limit: int | None = None
    """Take at most this many items of all WHAT together, an equal share of each: subgraphs by
    strata, nets at random.
    """

    plan: RunPlan = opt.plan("shard", "parts", "num_workers", "executor", "resume", "retry", jobs=1)

    settings: ProfileSettings = opt.fields_of(
        "passnet.bench.profiling.record:ProfileSettings",
        *("seed", "threads", "seconds", "attempts", "timeout_s", "memory_mib"),
    )

    page: Path | None = opt.shared("page")

    make_suite: Path | None = None
    """Write the op sequences that lose most to this Parquet file, as a suite; WHAT is then the
    source of the profiles, and --out their folder.
    """

    tasks: int = 30
    """With --make-suite, select at most this many tasks."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("profile")
def profile(options: ProfileOptions) -> None:
    """Measure the parts of a compiled call, and where torch.compile loses to eager torch.

    WHAT is a folder of a dataset, a suite, or nets: of the catalog (LIBRARY/NET, with wildcards),
    drawn from a folder of captured graphs, or a function of your own (path/to/file.py:function).
    Each is run by eager torch, by torch.compile from end to end, and by its compiled graph called
    directly, in turns, in its own process; several at a time may disturb each other. Without --out,
    WHAT are folders of earlier runs, whose tables are printed together. Exits with 1 if nothing
    could be measured.
    """
    from passnet.bench.profiling.draw import draw_subjects
    from passnet.bench.profiling.run import profile_subjects, read_profiles
    from passnet.core.terminal.progress import progress

    if options.out is None:
        if options.make_suite is not None:
            raise InputError("--make-suite needs the source of the profiles, and --out")
        if ignored := sorted(opt.options_given() - SHOWING):
            raise InputError(
                f"{', '.join(ignored)}: goes with --out, as finished profiles are only shown"
            )
        folders = [Path(word) for word in options.words]
        _report(read_profiles(folders), folders, options)
        return
    if options.make_suite is None and "--tasks" in opt.options_given():
        raise InputError("--tasks goes with --make-suite")
    items = draw_subjects(options.words, options.limit, options.settings.seed)
    total = sum(options.plan.shard.has(item.name) for item in items)
    with progress("profiling", total) as step:

        def report(record: ProfileRecord) -> None:
            step(f"{record.name}: {record.cause or record.status}")

        plan = replace(options.plan, progress=report)
        records = profile_subjects(items, options.settings, options.out, plan)
    _report(records, [options.out], options)
    if options.make_suite is not None:
        by_name = {item.name: item for item in items}
        _make_suite(records, by_name, options.make_suite, options.tasks)


def _report(
    records: Sequence[ProfileRecord], folders: Sequence[Path], options: ProfileOptions
) -> None:
    """Print the study of some records, and write it as a page if there is to be one."""
    from passnet.bench.profiling.run import profile_folder
    from passnet.bench.profiling.study import study
    from passnet.core.records.serialise import write_text
    from passnet.pages.figures.profile_page import draw_study, study_page
    from passnet.pages.tables.profile_tables import items_table, study_tables

    if not any(record.status == "ok" for record in records):
        nothing = {"num_measured": 0, "items": records}
        print_result(options.json, nothing, tables=[items_table(records)], wide=options.wide)
        sys.exit(1)
    numbers = study(records)
    tables = [items_table(records), *study_tables(numbers)]
    print_result(options.json, numbers, tables=tables, wide=options.wide)
    page = options.page
    left_out = sum(numbers.left_out.values()) / numbers.num_items
    if left_out > MAX_LEFT_OUT:
        print_notes([f"{100 * left_out:.1f} % of all items are left out, more than 5 %; measure "
                     "them again on a quieter machine, with --resume --retry"])  # fmt: skip
    if page is not None:
        figure = page.with_suffix(".svg")
        draw_study(numbers, figure)
        infos = [profile_folder(folder).read_info() for folder in folders]
        environments = [info.environment for info in infos if info.environment is not None]
        write_text(page, study_page(numbers, environments, figure.name))
        say(f"written: {page}, {figure}", err=options.json)


def _make_suite(
    records: Sequence[ProfileRecord], items: Mapping[str, ProfileSubject], path: Path, tasks: int
) -> None:
    """Write the op sequences that lose most as a suite."""
    from passnet.bench.profiling.study import slow_suite, study
    from passnet.judge.suite.suite import write_suite

    suite = slow_suite(path.stem, study(records, tasks).sequences, items)
    write_suite(path, suite)
    say(
        f"{counted(len(suite.tasks), 'task')}, {counted(len(suite.graphs), 'graph')} in {path}",
        err=True,
    )
