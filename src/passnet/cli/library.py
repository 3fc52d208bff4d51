"""`passnet library`: list, show, verify, import, merge, export and remove judged passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal

import click

from passnet.cli.library_results import (
    SHOWN_DIGITS,
    facts,
    fail_if_wrong,
    interval,
    judged,
    judging_hardware,
    row,
    verified_facts,
    verified_lines,
)
from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_result
from passnet.core.terminal.counts import counted
from passnet.core.terminal.visible_text import source_lines
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.passes.library.entries import PassEntry


@click.group("library", cls=ExtensibleGroup)
def library_group() -> None:
    """List, judge and pass on the passes that `passnet optimize` keeps.

    LIBRARY is the folder of a library, ENTRY the first characters of the digest of one of its
    entries, as `passnet library list` prints it. To list, show, export, merge and import, the word
    `shipped` is the library that comes with passnet.
    """


@dataclass(frozen=True, kw_only=True)
class LibraryListOptions:
    """Options of `passnet library list`."""

    library: Path = opt.argument()

    all: bool = opt.shared("all")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("list", library_group)
def list_command(options: LibraryListOptions) -> None:
    """List the passes of a library: their ops, times and hardware."""
    from passnet.pages.tables.tables import Table

    library = _read(options.library)
    entries = [entry for entry in _entries(library) if options.all or entry.saved_ms > 0]
    heads = ("entry", "ops", "arguments", "author", "eager ms", "pass ms", "speedup", "saved ms",
             "status", "judged on")  # fmt: skip
    note = "speedup: the 95 % interval; saved: by its lower bound, 0 where it reaches below 1."
    least = ("arguments", "author", "eager ms", "pass ms", "judged on")
    rows = [row(entry) for entry in entries]
    tables = [Table(str(library), heads, rows, note, least)]
    print_result(options.json, [*map(facts, entries)], tables=tables, wide=options.wide)


@dataclass(frozen=True, kw_only=True)
class LibraryShowOptions:
    """Options of `passnet library show`."""

    library: Path = opt.argument()

    entry: str = opt.argument()

    json: bool = opt.shared("json")


@opt.command("show", library_group)
def show_command(options: LibraryShowOptions) -> None:
    """Print an entry: its ops, its results by hardware and time, and the files of its pass."""
    from passnet.passes.library.entries import ENTRIES, PASS_FOLDER
    from passnet.passes.library.store import PassLibrary

    library = _read(options.library)
    [entry] = _matching(library, [options.entry])
    files = PassLibrary(library).files(entry) if entry.code_hash else {}
    folder = library / ENTRIES / entry.digest / PASS_FOLDER
    lines = [
        f"{entry.digest}: {entry.status}, by {entry.author}",
        f"judged {entry.origin} on {entry.hardware.text}, {entry.judged}, passnet {entry.passnet}",
        *([f"speedup {interval(entry)}: {entry.reference_ms:.4f} ms by eager torch, "
           f"{entry.candidate_ms:.4f} ms by the pass"] if entry.candidate_ms else []),
        *([f"error: {entry.error}"] if entry.error else []),
        f"arguments: {', '.join(entry.forms)}",
        "",
        entry.program.strip(),
        "",
        *(f"{folder / name}: {len(source_lines(text))} lines" for name, text in files.items()),
    ]  # fmt: skip
    print_result(options.json, {**facts(entry), "program": entry.program, "files": files}, lines)


@dataclass(frozen=True, kw_only=True)
class LibraryVerifyOptions:
    """Options of `passnet library verify`."""

    library: Path = opt.argument()

    entries: tuple[str, ...] = opt.argument(nargs=-1, required=False, metavar="[ENTRY]...")

    plan: RunPlan = opt.plan("executor", "num_workers", jobs=1)

    settings: RunSettings = opt.judging_of("judge.device", "num_threads", "judge.timing.seconds")

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("verify", library_group)
def verify_command(options: LibraryVerifyOptions) -> None:
    """Judge the passes of a library, or of each ENTRY, again on this machine.

    A pass that no longer wins is not used any more; merged passes are used if they win. On a Ray
    cluster, --jobs judges work at a time, on machines like this one. Exits with 1 if a pass that
    won is wrong here.
    """
    from passnet.passes.library.store import PassLibrary

    library = PassLibrary(_own(options.library))
    orders = library.orders(_matching(options.library, options.entries))
    results = judged(library, orders, options.plan, options.settings, options.sandbox)
    values = [verified_facts(verified) for verified in results]
    print_result(options.json, values, verified_lines(results))
    fail_if_wrong(options.library, results)


@dataclass(frozen=True, kw_only=True)
class LibraryImportOptions:
    """Options of `passnet library import`."""

    folder: Path = opt.argument()

    into: Path = opt.field(metavar="LIBRARY")
    """Add the passes to this library, which may be new."""

    plan: RunPlan = opt.plan("executor", "num_workers", jobs=1)

    settings: RunSettings = opt.judging_of("judge.device", "num_threads", "judge.timing.seconds")

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("import", library_group)
def import_command(options: LibraryImportOptions) -> None:
    """Judge the passes of FOLDER on this machine, then add them to a library.

    FOLDER is a library, or what `passnet library export` wrote. Its code runs in the sandbox of the
    judge only. Each pass is added once it was judged, and passes that win are used. A second import
    goes on after those that were judged here before. Exits with 1 if a pass that won is wrong here.
    """
    from passnet.judge.processes.sandbox import NO_SANDBOX
    from passnet.judge.protocol.device import kind_of
    from passnet.passes.library.foreign import foreign_orders
    from passnet.passes.library.store import PassLibrary

    sandbox, library = options.sandbox, PassLibrary(options.into)
    if sandbox.name == "none" and sandbox != NO_SANDBOX:
        raise InputError(
            f"no sandbox for the code of others: {sandbox.reason}; --sandbox none runs it without"
        )
    orders = foreign_orders(_read(options.folder))
    device = kind_of(options.settings.judge.device)
    fitting = [order for order in orders if order[0].hardware.device == device]
    hardware = judging_hardware(options.settings)
    known = {
        (entry.range, entry.code_hash)
        for entry in library.entries()
        if entry.origin == "here" and entry.hardware == hardware
    }
    new = [order for order in fitting if (order[0].range, order[0].code_hash) not in known]
    results = judged(library, new, options.plan, options.settings, sandbox) if new else []
    num_known, num_others = len(fitting) - len(new), len(orders) - len(fitting)
    values = {
        "passes": [verified_facts(verified) for verified in results],
        "num_known": num_known,
        "num_other_devices": num_others,
    }
    lines = [
        *(verified_lines(results) if new else []),
        *([f"{num_known} passes were judged here before"] if num_known else []),
        *([f"{num_others} passes are for another --device than {device}"] if num_others else []),
    ]
    print_result(options.json, values, lines)
    fail_if_wrong(options.folder, results)


@dataclass(frozen=True, kw_only=True)
class LibraryMergeOptions:
    """Options of `passnet library merge`."""

    library: Path = opt.argument()

    others: tuple[Path, ...] = opt.argument(nargs=-1)

    json: bool = opt.shared("json")


@opt.command("merge", library_group)
def merge_command(options: LibraryMergeOptions) -> None:
    """Take over the passes of OTHERS, which are libraries, into LIBRARY, which may be new.

    They are copied unjudged, and marked as judged elsewhere; `passnet library import` judges first.
    They are used once they were judged here: by `passnet library verify`, or when `passnet
    optimize` comes upon one.
    """
    from passnet.passes.library.store import PassLibrary

    library = options.library
    merged = {str(other): PassLibrary(library).merge(_read(other)) for other in options.others}
    lines = [f"{count} new passes of {other}" for other, count in merged.items()]
    lines.append(f"judge them here: passnet library verify {library}")
    print_result(options.json, merged, lines)


@dataclass(frozen=True, kw_only=True)
class LibraryExportOptions:
    """Options of `passnet library export`."""

    library: Path = opt.argument()

    entries: tuple[str, ...] = opt.argument(nargs=-1, required=False, metavar="[ENTRY]...")

    out: Path
    """Write the new library to this folder."""

    layout: Literal["library", "kernels"] = "library"
    """Write a library, or a repository that Hugging Face's package `kernels` loads by name."""

    name: str | None = None
    """With --layout kernels, name the repository so, by default as the folder."""

    license: str | None = opt.field(None, metavar="SPDX")
    """With --layout kernels, name this licence of the passes; it must be given."""

    all: bool = opt.shared("all")

    json: bool = opt.shared("json")


@opt.command("export", library_group)
def export_command(options: LibraryExportOptions) -> None:
    """Copy passes that win, or each ENTRY, with their records to a new library.

    With --layout kernels the library is part of a repository for Hugging Face's `kernels`, whose
    `passes()` names the folders of the passes that win. Passes judged elsewhere are left out of it.
    """
    from passnet.passes.library.kernels_layout import export_kernels
    from passnet.passes.library.store import PassLibrary

    library, out = _read(options.library), options.out
    if options.layout == "library" and (options.name or options.license):
        raise InputError("--name and --license are for --layout kernels; a library has neither")
    is_whole = options.all or options.entries
    is_published = options.layout == "kernels"
    entries = [
        entry
        for entry in _matching(library, options.entries)
        if is_whole or (entry.saved_ms > 0 and (entry.origin == "here" or not is_published))
    ]
    if not entries:
        raise InputError(f"{library}: no pass in it wins; give --all to copy all the same")
    if options.layout == "kernels":
        if not options.license:
            raise InputError("--layout kernels needs --license, such as MIT or Apache-2.0")
        name = options.name or out.resolve().name
        export_kernels(PassLibrary(library), out, entries, name, options.license)
    else:
        PassLibrary(library).export(out, entries)
    print_result(
        options.json,
        {"exported": len(entries)},
        [f"{counted(len(entries), 'pass', 'passes')} in {out}"],
    )


@dataclass(frozen=True, kw_only=True)
class LibraryRemoveOptions:
    """Options of `passnet library remove`."""

    library: Path = opt.argument()

    entries: tuple[str, ...] = opt.argument(nargs=-1, metavar="ENTRY...")

    json: bool = opt.shared("json")


@opt.command("remove", library_group)
def remove_command(options: LibraryRemoveOptions) -> None:
    """Remove the passes of some entries."""
    from passnet.passes.library.store import PassLibrary

    entries = _matching(_own(options.library), options.entries)
    PassLibrary(options.library).remove(entries)
    digests = [entry.digest for entry in entries]
    lines = [f"removed {digest[:SHOWN_DIGITS]}" for digest in digests]
    print_result(options.json, {"removed": digests}, lines)


def _read(library: Path) -> Path:
    """Return the folder of a library; `shipped` names passnet's own where no folder does."""
    from passnet.passes.library.entries import shipped_library

    if not _is_shipped(library):
        return library
    shipped = shipped_library()
    if shipped is None:
        raise InputError("this passnet was installed without its library; give the folder of one")
    return shipped


def _own(library: Path) -> Path:
    """Return the folder of a library to change; raise InputError for `shipped`."""
    if _is_shipped(library):
        raise InputError(
            "shipped: this library is only read: by list, show, export, merge and import; `passnet "
            "library import shipped --into LIBRARY` judges it here"
        )
    return library


def _name(library: Path) -> str:
    """Return the words that name a library on the command line."""
    from passnet.passes.library.entries import shipped_library

    return "shipped" if library == shipped_library() else str(library)


def _is_shipped(library: Path) -> bool:
    return str(library) == "shipped" and not library.exists()


def _entries(library: Path) -> list[PassEntry]:
    from passnet.passes.library.entries import all_entries, latest

    return sorted(latest(all_entries(library)), key=lambda entry: (-entry.saved_ms, entry.digest))


def _matching(library: Path, words: Sequence[str]) -> list[PassEntry]:
    """Return the entries whose digests begin with some words; all without any."""
    entries, name = _entries(library), quote(_name(library))
    matching = {}
    for word in words:
        named = [entry for entry in entries if word and entry.digest.startswith(word)]
        if len(named) != 1:
            raise InputError(
                f"{library}: {len(named)} of {len(entries)} entries have a digest that begins with "
                f"{word!r}; `passnet library list {name} --all` prints them"
            )
        matching[named[0].digest] = named[0]
    return list(matching.values()) if words else entries
