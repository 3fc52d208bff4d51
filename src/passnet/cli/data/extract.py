"""`passnet extract`: capture the graphs of nets of the catalog, or of one's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.core.terminal.counts import counted
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.data.capture.record import CaptureSettings, NetRecord

SUMMARY_FILE = "summary.md"
MAX_SHOWN = 20
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class ExtractOptions:
    """Options of `passnet extract`."""

    entries: tuple[str, ...] = opt.argument(nargs=-1, required=False, complete=opt.completion.nets)

    catalog: tuple[str, ...] = opt.field((), metavar="LIBRARY")
    """Capture all nets of this library or catalog file."""

    list: bool = False
    """Only print the entries, or the libraries if no entry is given."""

    out: Path | None = None
    """Write the graphs to this folder."""

    plan: RunPlan = opt.plan("num_workers", "resume", "retry", "executor")

    settings: CaptureSettings = opt.fields_of(
        "passnet.data.capture.record:CaptureSettings",
        *("mode", "train", "backward", "limits.seconds", "limits.memory_mib"),
    )

    no_check: bool = False
    """Do not compare the outputs of the graphs with those of the net."""

    json: bool = opt.shared("json")


@opt.command("extract")
def extract(options: ExtractOptions) -> None:
    """Capture the computation graphs of ENTRIES.

    An entry is LIBRARY/NET of the catalog (`--list` shows them; wildcards are allowed), a net of a
    catalog file (path/to/catalog.py/NET), a function of your own that returns a net and its inputs
    (path/to/file.py:function), or a repository of the Hugging Face hub (hub/owner/name, or
    hub/list.txt), whose config.json is all that is read. Nets are built with random weights, each
    in its own process. Exits with 1 if none was captured.
    """
    from passnet.core.records.serialise import write_text
    from passnet.core.terminal.progress import progress
    from passnet.data.capture.catalog import resolve
    from passnet.data.capture.run import run_extract
    from passnet.pages.tables.catalog import summary

    if options.list and not options.entries and not options.catalog:
        _list_libraries(options.json)
        return
    entries = resolve(options.entries, options.catalog)
    if options.list:
        print_result(options.json, entries, entries)
        return
    if not entries:
        raise InputError("nothing to capture: give ENTRIES, or --catalog LIBRARY; see --list")
    if options.out is None:
        raise InputError("give --out FOLDER, the folder of the graphs to write")
    if options.settings.backward and not options.settings.train:
        raise InputError("--backward captures the gradients of training; give --train too")
    settings = replace(options.settings, check=not options.no_check)
    with progress("capturing nets", len(entries)) as step:
        plan = replace(options.plan, progress=lambda net: step(net.entry))
        records, manifest = run_extract(entries, settings, options.out, plan)
    write_text(options.out / SUMMARY_FILE, summary(records))
    named = [record for record in records if record.entry in set(entries)]
    total = (
        f"{counted(manifest.num_graphs, 'distinct graph')} of "
        f"{counted(manifest.num_structures, 'structure')}, "
        f"{manifest.num_ops} ops, in {options.out}"
    )
    lines = [*_lines(named, len(records), options.out), total]
    print_result(options.json, {"nets": named, "graphs": manifest}, lines)
    if not any(record.status == "captured" for record in named):
        sys.exit(1)


def _lines(named: Sequence[NetRecord], num_records: int, out: Path) -> Iterator[str]:
    """Return lines on the first failures of nets, and on their number."""
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
    captured = f"{len(named) - len(failed)} of {len(named)} nets captured"
    yield f"{captured}; {out} has records of {num_records}"


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
