"""`passnet profile`: where the time of compiled calls goes, on many subgraphs or nets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_notes, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.bench.profiling.record import ProfileRecord
    from passnet.core.jobs.executors import Executor
    from passnet.core.jobs.run_plan import RunShard

MAX_LEFT_OUT = 0.05


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WHAT...")
@opt.path("--out", "The folder of the profiles to write; without it, tables of WHAT are printed, "
          "which are such folders.")  # fmt: skip
@opt.count("--limit", "The most items; subgraphs are drawn stratified, nets by chance.")
@opt.number("--seed", "Seed of what is drawn, and of inputs.", default=0)
@opt.shard("items")
@opt.parts("profiles")
@opt.option("--jobs", "Items to work on at a time; they may disturb each other.",
            type=click.IntRange(1, opt.MAX_JOBS), default=1)  # fmt: skip
@opt.threads
@opt.amount("--seconds", "Measure an item for about so long, and longer where it is unstable.",
            default=1.0)  # fmt: skip
@opt.count("--attempts", "How often an item is measured at most, until it is stable.", default=3)
@opt.amount("--timeout", "The most seconds for an item, with its compilation.", default=180.0)
@opt.count("--memory", "The most memory for an item, in MiB.", default=8192)
@opt.executor
@opt.resume
@opt.flag("--retry", "With --resume, do again what failed or is unstable.")
@opt.path("--page", "A file to write the study to as a page of Markdown, its figure beside it.")
@opt.path("--make-suite", "A Parquet file to write the op sequences that lose most to, as a suite; "
          "WHAT is then what was profiled, and --out the folder.", "suite_path")  # fmt: skip
@opt.count("--tasks", "With --make-suite, the most tasks.", default=30)
@opt.json
def profile(words: tuple[str, ...], out: Path | None, limit: int | None, seed: int,
            shard: RunShard, taken: tuple[Path, ...], jobs: int, threads: int,
            seconds: float, attempts: int,
            timeout: float, memory: int, executor: Executor, resume: bool, retry: bool,
            page: Path | None, suite_path: Path | None, tasks: int,
            as_json: bool) -> None:  # fmt: skip
    """Measure where the time of compiled calls goes, and where torch.compile loses to eager torch.

    WHAT is a folder of a dataset, a suite, or nets: of the catalog (LIBRARY/NET, with wildcards),
    drawn from a folder of captured graphs, or a function of your own (path/to/file.py:function).
    Each is run by eager torch, by torch.compile from end to end, and by its compiled graph called
    directly, in turns, in a process of its own. Without --out, WHAT are folders of earlier runs,
    whose tables are printed together. Exits with 1 if nothing could be measured.
    """
    from passnet.bench.profiling.draw import draw_items
    from passnet.bench.profiling.record import ProfileSettings
    from passnet.bench.profiling.run import profile_items, read_profiles
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import progress

    if out is None:
        if suite_path is not None:
            raise InputError("--make-suite needs what was profiled, and --out with its profiles")
        _report(read_profiles([Path(word) for word in words]), map(Path, words), page, as_json)
        return
    items = draw_items(words, limit, seed)
    settings = ProfileSettings(threads, seconds, attempts, timeout, memory, seed)
    total = sum(shard.has(item.name) for item in items)
    with progress("profiling", total) as step:
        records = profile_items(items, settings, out, RunPlan(num_workers=jobs, resume=resume, retry=retry, executor=executor, shard=shard, progress=lambda record: step(f"{record.name}: {record.cause or record.status}"), parts=taken))  # fmt: skip
    _report(records, [out], page, as_json)
    if suite_path is not None:
        _make_suite(records, {item.name: item for item in items}, suite_path, tasks)


def _report(records: list[ProfileRecord], folders, page: Path | None, as_json: bool) -> None:  # noqa: ANN001
    """The study of some records: as tables or JSON, and as a page if there is to be one."""
    from passnet.bench.profiling.run import profile_folder
    from passnet.bench.profiling.study import study
    from passnet.core.records.serialise import write_text
    from passnet.pages.figures.profile_page import draw_study, study_page
    from passnet.pages.tables.profile_tables import items_table, study_tables

    if not any(record.status == "ok" for record in records):
        print_tables([items_table(records)])
        sys.exit(1)
    found = study(records)
    if as_json:
        print_json(found)
    else:
        print_tables([items_table(records), *study_tables(found)])
    left_out = sum(found.left_out.values()) / found.num_items
    if left_out > MAX_LEFT_OUT:
        print_notes([f"{100 * left_out:.1f} % of all items are left out, more than 5 %; measure "
                     "them again on a quieter machine, with --resume --retry"])  # fmt: skip
    if page is not None:
        figure = page.with_suffix(".svg")
        draw_study(found, figure)
        infos = [profile_folder(folder).read_info() for folder in folders]
        environments = [info.environment for info in infos if info.environment is not None]
        write_text(page, study_page(found, environments, figure.name))
        click.echo(f"written: {page}, {figure}", err=as_json)


def _make_suite(records: list[ProfileRecord], items, path: Path, tasks: int) -> None:  # noqa: ANN001
    """Write the op sequences that lose most as a suite."""
    from passnet.bench.profiling.slow_suite import slow_suite
    from passnet.bench.profiling.study import study
    from passnet.judge.suite.suite import write_suite

    suite = slow_suite(path.stem, study(records, tasks).sequences, items)
    write_suite(path, suite)
    click.echo(f"{len(suite.tasks)} tasks, {len(suite.graphs)} graphs in {path}", err=True)
