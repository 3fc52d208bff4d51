"""`passnet library`: list, show, verify, merge, export and remove judged passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.exits import fail
from passnet.cli.output import print_json, print_notes, print_result, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.passes.library.entries import PassEntry

SHOWN_DIGITS = 12
"""How many characters of a digest are shown; fewer do to name an entry."""

library_argument = click.argument("library", type=opt.PATH)
readable_argument = click.argument(
    "library", type=opt.PATH, callback=lambda *given: _read(given[2])
)
entries_argument = click.argument("entries", nargs=-1, metavar="[ENTRY]...")


@click.group("library")
def library_group() -> None:
    """List, judge and pass on the passes that `passnet optimize` keeps.

    LIBRARY is the folder of a library, ENTRY the first characters of the digest of one of its
    entries, as `passnet library list` prints it. To list, show and merge, the word `shipped` is the
    library that comes with passnet.
    """


@library_group.command("list")
@readable_argument
@opt.flag("--all", "List what was tried in vain too, not only passes that win.", "with_all")
@opt.json
def list_command(library: Path, with_all: bool, as_json: bool) -> None:
    """List the passes of a library: what each replaces, and what it saves on which hardware."""
    entries = [entry for entry in _entries(library) if with_all or entry.saved_ms > 0]
    if as_json:
        print_json([_facts(entry) for entry in entries])
        return
    from passnet.pages.tables.tables import Table

    heads = ("entry", "ops", "arguments", "author", "eager ms", "pass ms", "speedup", "saved ms",
             "status", "judged on")  # fmt: skip
    note = "speedup: the 95 % interval; saved: by its lower bound, 0 where it reaches below 1."
    print_tables([Table(str(library), heads, [_row(entry) for entry in entries], note)])


@library_group.command("show")
@readable_argument
@click.argument("entry")
@opt.json
def show_command(library: Path, entry: str, as_json: bool) -> None:
    """Print an entry: its ops, how it did, on what and when, and the files of its pass."""
    from passnet.passes.library.entries import ENTRIES, PASS_FOLDER
    from passnet.passes.library.store import PassLibrary

    [found] = _chosen(library, [entry])
    files = PassLibrary(library).files(found) if found.code_hash else {}
    folder = library / ENTRIES / found.digest / PASS_FOLDER
    lines = [
        f"{found.digest}: {found.status}, by {found.author}",
        f"judged {found.origin} on {found.hardware.text}, {found.judged}, passnet {found.passnet}",
        *([f"speedup {_interval(found)}: {found.reference_ms:.4f} ms by eager torch, "
           f"{found.candidate_ms:.4f} ms by the pass"] if found.candidate_ms else []),
        *([f"error: {found.error}"] if found.error else []),
        f"arguments: {', '.join(found.forms)}",
        "",
        found.program.strip(),
        "",
        *(f"{folder / name}: {len(text.splitlines())} lines" for name, text in files.items()),
    ]  # fmt: skip
    print_result(as_json, {**_facts(found), "program": found.program, "files": files}, lines)


@library_group.command("verify")
@library_argument
@entries_argument
@opt.device
@opt.threads
@opt.amount("--seconds", "Seconds to measure each pass.", default=0.4)
@opt.sandbox
@opt.json
def verify_command(library: Path, entries: tuple[str, ...], device: str, threads: int,
                   seconds: float, sandbox: Sandbox, as_json: bool) -> None:  # fmt: skip
    """Judge the passes of a library again on this machine: those of ENTRY, or all.

    What no longer wins is not used any more; passes that were merged are used if they win. Exits
    with 1 if a pass that won is wrong here.
    """
    from dataclasses import replace

    from passnet.core.terminal.progress import progress
    from passnet.optimizer.choose.judging import judging_settings, range_evaluator
    from passnet.passes.library.store import PassLibrary
    from passnet.passes.library.verification import VerifiedPass, verify_library

    chosen = [entry for entry in _chosen(library, entries) if entry.code_hash]
    print_notes((), sandbox)
    settings = replace(judging_settings(threads, device), sandbox=sandbox.name)
    if settings.judge.timing is not None:
        timing = replace(settings.judge.timing, seconds=seconds)
        settings = replace(settings, judge=replace(settings.judge, timing=timing))
    with range_evaluator(settings) as evaluator, progress("judging passes", len(chosen)) as step:

        def report(verified: VerifiedPass) -> None:
            step(verified.entry.digest[:SHOWN_DIGITS])

        results = verify_library(PassLibrary(library), chosen, evaluator, report)
    values = [
        {
            "before": _facts(each.entry),
            "after": _facts(each.after) if each.after else None,
            "is_used": each.is_used,
            "error": each.error,
        }
        for each in results
    ]
    used = sum(each.is_used for each in results)
    lines = [_verified_line(each) for each in results]
    print_result(as_json, values, [*lines, f"{used} of {len(results)} passes are used here"])
    wrong = [each.entry.digest[:SHOWN_DIGITS] for each in results if each.is_wrong]
    if wrong:
        fail(f"{library}: {', '.join(wrong)} won before, and are wrong here; see above")


@library_group.command("merge")
@library_argument
@click.argument("others", nargs=-1, required=True, type=opt.PATH)
@opt.json
def merge_command(library: Path, others: tuple[Path, ...], as_json: bool) -> None:
    """Take over the passes of OTHERS, which are libraries, into LIBRARY, which may be new.

    They are used only after they were judged here: by `passnet library verify`, or when
    `passnet optimize` comes upon one.
    """
    from passnet.passes.library.store import PassLibrary

    merged = {str(other): PassLibrary(library).merge(_read(other)) for other in others}
    lines = [f"{count} new passes of {other}" for other, count in merged.items()]
    print_result(as_json, merged, [*lines, f"judge them here: passnet library verify {library}"])


@library_group.command("export")
@library_argument
@entries_argument
@opt.out("The folder of the new library")
@opt.flag("--all", "Copy what was tried in vain too, not only passes that win.", "with_all")
@opt.json
def export_command(library: Path, entries: tuple[str, ...], out: Path, with_all: bool,
                   as_json: bool) -> None:  # fmt: skip
    """Copy passes with their records to a new library: those of ENTRY, or all that win."""
    from passnet.passes.library.store import PassLibrary

    kept = with_all or entries
    chosen = [entry for entry in _chosen(library, entries) if kept or entry.saved_ms > 0]
    if not chosen:
        raise InputError(f"{library}: no pass in it wins; give --all to copy all the same")
    PassLibrary(library).export(out, chosen)
    print_result(as_json, {"exported": len(chosen)}, [f"{len(chosen)} passes are in {out}"])


@library_group.command("remove")
@library_argument
@click.argument("entries", nargs=-1, required=True, metavar="ENTRY...")
@opt.json
def remove_command(library: Path, entries: tuple[str, ...], as_json: bool) -> None:
    """Remove the passes of some entries."""
    from passnet.passes.library.store import PassLibrary

    chosen = _chosen(library, entries)
    PassLibrary(library).remove(chosen)
    print_result(as_json, {"removed": [entry.digest for entry in chosen]},
                 [f"removed {entry.digest[:SHOWN_DIGITS]}" for entry in chosen])  # fmt: skip


def _read(library: Path) -> Path:
    """The folder that is meant: that of the shipped library by its name, if no other has it."""
    from passnet.passes.library.entries import shipped_library

    if str(library) != "shipped" or library.exists():
        return library
    shipped = shipped_library()
    if shipped is None:
        raise InputError("this passnet was installed without its library; give the folder of one")
    return shipped


def _entries(library: Path) -> list[PassEntry]:
    from passnet.passes.library.entries import all_entries, latest

    return sorted(latest(all_entries(library)), key=lambda entry: (-entry.saved_ms, entry.digest))


def _chosen(library: Path, words: Sequence[str]) -> list[PassEntry]:
    """The entries whose digests begin with some words; all without any."""
    entries = _entries(library)
    chosen = {}
    for word in words:
        found = [entry for entry in entries if word and entry.digest.startswith(word)]
        if len(found) != 1:
            raise InputError(
                f"{library}: {len(found)} of {len(entries)} entries have a digest that begins with "
                f"{word!r}; passnet library list --all prints them"
            )
        chosen[found[0].digest] = found[0]
    return list(chosen.values()) if words else entries


def _facts(entry: PassEntry) -> dict[str, Any]:
    """What --json gives of an entry."""
    names = ("digest", "range", "ops", "forms", "hardware", "author", "code_hash", "origin",
             "judged", "passnet", "status", "error", "speedup", "speedup_low", "speedup_high",
             "reference_ms", "candidate_ms", "saved_ms")  # fmt: skip
    return {name: getattr(entry, name) for name in names}


def _row(entry: PassEntry) -> tuple[str, ...]:
    times = (entry.reference_ms, entry.candidate_ms)
    eager_ms, pass_ms = ("–" if each is None else f"{each:.4f}" for each in times)
    origin = "" if entry.origin == "here" else " (elsewhere)"
    return (
        entry.digest[:SHOWN_DIGITS],
        " ".join(op.rsplit(".", 1)[-1] for op in entry.ops),
        ", ".join(entry.forms),
        entry.author,
        eager_ms,
        pass_ms,
        _interval(entry),
        f"{entry.saved_ms:.4f}",
        entry.status,
        entry.hardware.text + origin,
    )


def _interval(entry: PassEntry) -> str:
    if entry.speedup_low is None or entry.speedup_high is None:
        return "–"
    return f"{entry.speedup_low:.2f} – {entry.speedup_high:.2f}"


def _verified_line(verified: Any) -> str:
    name = verified.entry.digest[:SHOWN_DIGITS]
    if verified.after is None:
        return f"{name}: not judged: {verified.error}"
    reason = f": {verified.error}" if verified.error else ""
    return (
        f"{name}: {verified.entry.status} before, {verified.after.status} here, speedup "
        f"{_interval(verified.after)}{reason}"
    )
