"""`passnet extract`: capture the graphs of nets of the catalog, or of one's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from passnet.cli import options as opt
from passnet.cli.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.executors import Executor
    from passnet.data.capture.record import NetRecord

SUMMARY_FILE = "summary.md"
MAX_SHOWN = 20
MAX_ERROR_CHARACTERS = 200


@click.command()
@click.argument("entries", nargs=-1)
@opt.option("--all", "Capture all nets of this library or catalog file (repeatable).",
            "libraries", multiple=True, metavar="LIBRARY")  # fmt: skip
@opt.flag("--list", "Only print the entries, or the libraries if no entry is given.", "only_list")
@opt.path("--out", "The folder of the graphs to write.")
@opt.jobs("Nets")
@opt.resume
@opt.flag("--retry", "With --resume, try again what failed.")
@opt.executor
@opt.choice("--weights", ["auto", "fake", "real"], "The weights of nets: without memory (fake), "
            "with values (real), or with values only where they are needed (auto).",
            default="auto")  # fmt: skip
@opt.flag("--train", "Capture the forward pass of training, and not that of evaluation.")
@opt.flag("--backward", "With --train, capture the graphs of gradients too.")
@opt.flag("--no-check", "Do not compare the outputs of the graphs with those of the net.")
@opt.amount("--timeout", "The most seconds for a net.", default=180.0)
@opt.count("--memory", "The most memory for a net, in MiB.", default=8192)
@opt.json
def extract(entries: tuple[str, ...], libraries: tuple[str, ...], only_list: bool,
            out: Path | None, jobs: int, resume: bool, retry: bool, executor: Executor,
            weights: Literal["auto", "fake", "real"], train: bool, backward: bool, no_check: bool,
            timeout: float, memory: int, as_json: bool) -> None:  # fmt: skip
    """Capture the computation graphs of ENTRIES.

    An entry is LIBRARY/NET of the catalog (`--list` shows them; wildcards are allowed), a net of a
    catalog file (path/to/catalog.py/NET), a function that returns a net and its inputs
    (path/to/file.py:function), or a repository of the Hugging Face hub (hub/owner/name, or
    hub/list.txt), of which only config.json is read. Nets are built with random weights, each in
    its own process. Exits with 1 if none was captured.
    """
    from passnet.core.jobs.process import JobLimits
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.records.serialise import write_text
    from passnet.core.terminal.progress import progress
    from passnet.data.capture.catalog.selection import resolve
    from passnet.data.capture.record import CaptureSettings
    from passnet.data.capture.run import run_extract
    from passnet.pages.tables.catalog import summary

    if only_list and not entries and not libraries:
        _list_libraries(as_json)
        return
    selected = resolve(entries, libraries)
    if only_list:
        print_result(as_json, selected, selected)
        return
    if not selected:
        raise InputError("nothing to capture: give ENTRIES, or --all LIBRARY; see --list")
    if out is None:
        raise InputError("give --out FOLDER, the folder of the graphs to write")
    if backward and not train:
        raise InputError("--backward captures the gradients of training; give --train too")
    settings = CaptureSettings(
        weights, train, backward, check=not no_check, limits=JobLimits(timeout, memory)
    )
    with progress("capturing nets", len(selected)) as step:
        records, manifest = run_extract(
            selected,
            settings,
            out,
            RunPlan(
                num_workers=jobs,
                resume=resume,
                retry=retry,
                executor=executor,
                progress=lambda net: step(net.entry),
            ),
        )
    write_text(out / SUMMARY_FILE, summary(records))
    named = [record for record in records if record.entry in set(selected)]
    total = (
        f"{manifest.num_graphs} distinct graphs of {manifest.num_structures} structures, "
        f"{manifest.num_ops} ops, in {out}"
    )
    lines = [*_lines(named, len(records), out), total]
    print_result(as_json, {"nets": named, "graphs": manifest}, lines)
    if not any(record.status == "captured" for record in named):
        sys.exit(1)


def _lines(named: Sequence[NetRecord], num_records: int, out: Path) -> Iterator[str]:
    """What is printed of the nets that were named: the first failures, and how many there are."""
    failed = [record for record in named if record.status == "failed"]
    wrong = [record for record in named if record.constraints and record.constraints.error]
    for record in failed[:MAX_SHOWN]:
        error = " ".join((record.error or "").split())[:MAX_ERROR_CHARACTERS]
        yield f"FAILED {record.entry}: {record.cause}: {error}"
    if len(failed) > MAX_SHOWN:
        yield f"and {len(failed) - MAX_SHOWN} more; see {out / SUMMARY_FILE}"
    for record in wrong[:MAX_SHOWN]:
        assert record.constraints is not None, "as selected"
        yield f"captured, but {record.entry}: {record.constraints.error}"
    yield f"{len(named) - len(failed)} of {len(named)} nets captured; {num_records} in {out}"


def _list_libraries(as_json: bool) -> None:
    from passnet.data.capture.catalog import libraries, library, names_of

    rows = []
    for name in libraries():
        try:
            number: int | None = len(names_of(name))
            adds = library(name).ADDS
        except InputError as error:
            is_missing = isinstance(error.__cause__, ModuleNotFoundError)
            number = None
            adds = f"not installed: {error.__cause__}" if is_missing else f"broken: {error}"
        rows.append({"library": name, "nets": number, "adds": adds})
    lines = [
        f"{row['library']:18} {'-' if row['nets'] is None else row['nets']:>6}  {row['adds']}"
        for row in rows
    ]
    print_result(as_json, rows, lines)
