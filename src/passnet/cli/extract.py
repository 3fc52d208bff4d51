"""`passnet extract`: capture the graphs of nets of the catalog, or of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.options import jobs_option
from passnet.cli.output import print_json
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.extract.record import NetRecord

SUMMARY_FILE = "summary.md"
FAILURE = 1


@click.command()
@click.argument("entries", nargs=-1)
@click.option("--all", "libraries", multiple=True, help="All nets of this library (repeatable).")
@click.option("--list", "only_list", is_flag=True, help="Print the entries that are meant.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for what comes of it.")
@jobs_option
@click.option("--resume", is_flag=True, help="Go on with what the folder holds.")
@click.option("--retry", is_flag=True, help="With --resume: try again what failed.")
@click.option("--executor", "place", default="local", show_default=True, help="local or ray.")
@click.option(
    "--weights",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "fake", "real"]),
    help="Weights without memory, real ones, or real ones only where fake ones do not do.",
)
@click.option("--train", is_flag=True, help="The forward pass of training, not of evaluation.")
@click.option("--backward", is_flag=True, help="With --train: the graphs of gradients, too.")
@click.option("--no-check", is_flag=True, help="Do not compare what the graphs and the net give.")
@click.option("--timeout", default=180.0, show_default=True, help="Seconds a net may take.")
@click.option("--memory", default=8192, show_default=True, help="MiB a net may take.")
@click.option("--json", "as_json", is_flag=True, help="Print records as JSON instead.")
@click.pass_context
def extract(
    ctx: click.Context,
    entries: tuple[str, ...],
    libraries: tuple[str, ...],
    only_list: bool,
    out: Path | None,
    jobs: int,
    resume: bool,
    retry: bool,
    place: str,
    weights: str,
    train: bool,
    backward: bool,
    no_check: bool,
    timeout: float,
    memory: int,
    as_json: bool,
) -> None:
    """Capture the computation graphs of ENTRIES.

    An entry is LIBRARY/NET of the catalog (`--list` shows them; wildcards are allowed), a function
    of your own that returns a net and its inputs (path/to/file.py:function), or a repository of the
    Hugging Face hub (hub/owner/name, or hub/list.txt), of which only config.json is read. Nets are
    built with random weights, each in a process of its own. Exits with 1 if none was captured.
    """
    from passnet.extract.entry_selection import resolve
    from passnet.extract.record import CaptureSettings
    from passnet.extract.run import run_extract
    from passnet.jobs.executors import executor
    from passnet.jobs.process import JobLimits
    from passnet.report.catalog import summary
    from passnet.report.progress import progress

    if only_list and not entries and not libraries:
        _list_libraries(as_json)
        return
    wanted = resolve(entries, libraries)
    if only_list:
        print_json(wanted) if as_json else click.echo("\n".join(wanted))
        return
    if not wanted:
        raise InputError("nothing to capture: give ENTRIES, or --all LIBRARY; see --list")
    if out is None:
        raise InputError("give --out FOLDER for what comes of it")
    if backward and not train:
        raise InputError("gradients are those of training: give --train with --backward")
    settings = CaptureSettings(
        mode=weights,  # type: ignore[arg-type]
        train=train,
        backward=backward,
        check=not no_check,
        limits=JobLimits(timeout, memory),
    )
    with progress("capturing nets", len(wanted)) as step:

        def tell(record: NetRecord) -> None:
            step(record.entry)

        records, manifest = run_extract(
            wanted, settings, out, jobs, resume, retry, executor(place), tell
        )
    (out / SUMMARY_FILE).write_text(summary(records), encoding="utf-8")
    named = [item for item in records if item.entry in set(wanted)]
    if as_json:
        print_json({"nets": named, "graphs": manifest})
    else:
        _print(named, len(records), out)
        click.echo(
            f"{manifest.num_graphs} distinct graphs of {manifest.num_structures} structures, "
            f"{manifest.num_ops} ops, in {out}"
        )
    if not any(item.status == "captured" for item in named):
        ctx.exit(FAILURE)


def _print(named: list[NetRecord], num_all: int, out: Path) -> None:
    failed = [item for item in named if item.status == "failed"]
    wrong = [item for item in named if item.constraints and item.constraints.error]
    for item in failed[:20]:
        error = " ".join((item.error or "").split())[:200]
        click.echo(f"FAILED {item.entry}: {item.cause}: {error}")
    if len(failed) > 20:
        click.echo(f"and {len(failed) - 20} more; see {out / SUMMARY_FILE}")
    for item in wrong[:20]:
        assert item.constraints is not None, "as selected"
        click.echo(f"captured, but {item.entry}: {item.constraints.error}")
    click.echo(f"{len(named) - len(failed)} of {len(named)} nets captured; {num_all} in {out}")


def _list_libraries(as_json: bool) -> None:
    from passnet.extract.catalog import LIBRARIES, library

    found = []
    for name in LIBRARIES:
        try:
            known = library(name)
            number: int | None = len(known.names())
            adds = known.ADDS
        except (InputError, ImportError, OSError, RuntimeError) as cause:
            number, adds = None, f"not installed: {cause}"
        found.append({"library": name, "nets": number, "adds": adds})
    if as_json:
        print_json(found)
        return
    for item in found:
        nets = "-" if item["nets"] is None else item["nets"]
        click.echo(f"{item['library']:18} {nets:>6}  {item['adds']}")
