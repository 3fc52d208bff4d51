"""`passnet leaderboard`: runs as entries for pull requests, checked and judged again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import options as opt
from passnet.cli.exits import fail
from passnet.cli.output import print_json, print_notes
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.bench.leaderboard.entry_checks import EntryCheck
    from passnet.bench.leaderboard.rejudging import EntryVerification
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite
    from passnet.judge.trial import Trial

leaderboard_option = opt.path("--leaderboard", "The folder of the leaderboard.",
                              default=Path("leaderboard"))  # fmt: skip
suites_option = opt.suites("--suite", "A suite that was measured and does not ship with passnet "
                           "(repeatable).", "suites")  # fmt: skip


@click.group("leaderboard")
def leaderboard_group() -> None:
    """Add runs to a leaderboard, check what others add, and judge it again."""


@leaderboard_group.command("add")
@opt.folder
@opt.option("--name", "The name of the entry.", required=True)
@opt.option("--by", "Who sends it in.", required=True)
@opt.option("--candidate", "Only this candidate of the run, by its name there (repeatable).",
            "candidates", multiple=True, metavar="NAME")  # fmt: skip
@leaderboard_option
@suites_option
@opt.json
def add_command(folder: Path, name: str, by: str, candidates: tuple[str, ...], leaderboard: Path,
                suites: tuple[str, ...], as_json: bool) -> None:  # fmt: skip
    """Make the run in FOLDER an entry of a leaderboard, with its trials and pass folders.

    The run must be complete, and its numbers must follow from its raw times; else nothing is
    written, and the reasons are named.
    """
    from passnet.bench.leaderboard.entry import check_name, write_entry
    from passnet.bench.leaderboard.entry_checks import check_run, failed
    from passnet.bench.run_record import run_folder
    from passnet.core.records.folders import atomic_folder
    from passnet.pages.site.measured import KnownSuites

    check_name(name)
    run = run_folder(folder)
    info, trials = run.read_info(), list(run.records().values())
    if candidates:
        known = [candidate.name for candidate in info.candidates]
        missing = [each for each in candidates if each not in known]
        if missing:
            raise InputError(f"{folder}: has no candidate {missing[0]}; it has {', '.join(known)}")
        kept = tuple(each for each in info.candidates if each.name in candidates)
        hashes = {each: text for each, text in info.code_hashes.items() if each in candidates}
        info = replace(info, candidates=kept, code_hashes=hashes)
        trials = [trial for trial in trials if trial.candidate in candidates]
    suite = KnownSuites(_given(suites)).of_hash(info.suite_hash)
    problems = failed(check_run(info, trials, suite))
    if problems or suite is None:
        raise InputError(f"{folder}: cannot be an entry. " + "; ".join(problems))
    with atomic_folder(leaderboard / name) as partial:
        entry = write_entry(partial, name, by, info, trials, suite)
    if as_json:
        print_json(entry)
        return
    for candidate, score in entry.scores.items():
        text = "not timed" if score is None else f"AS {score.score:.3f}"
        click.echo(f"{candidate}: {text}")
    click.echo(f"written to {leaderboard / name}; check it with `passnet leaderboard verify`")


def _given(suites: tuple[str, ...]) -> tuple[Suite, ...]:
    from passnet.judge.suite.suite import load_suite

    return tuple(load_suite(name) for name in suites)


@leaderboard_group.command("verify")
@click.argument("names", nargs=-1, metavar="[ENTRY]...")
@leaderboard_option
@suites_option
@opt.flag("--rejudge", "Judge the entries again on this machine; only those are verified.",
          "is_rejudged")  # fmt: skip
@opt.path("--work", "With --rejudge, the folder of the runs, which go on where they stopped.",
          default=Path("runs/rejudged"))  # fmt: skip
@opt.held_out
@opt.sandbox
@opt.json
def verify_command(names: tuple[str, ...], leaderboard: Path, suites: tuple[str, ...],
                   is_rejudged: bool, work: Path, held_out: Suite | None, sandbox: Sandbox,
                   as_json: bool) -> None:  # fmt: skip
    """Check the entries of a leaderboard from their records, or judge them again.

    Of each ENTRY, of all by default, the scores are computed again from its raw times, and it is
    checked for completeness, the suite's hash, the judge's version, settings and sources. With
    --rejudge its pass folders are then judged here, confined by a sandbox. Exits with 1 if a check
    fails, or what comes out here does not confirm what is claimed.
    """
    from passnet.bench.leaderboard.entry import entry_folders, read_entry
    from passnet.bench.leaderboard.entry_checks import check_entry, failed
    from passnet.bench.leaderboard.rejudging import read_verification, write_verification
    from passnet.pages.site.measured import KnownSuites

    known = KnownSuites(_given(suites))
    facts = []
    for folder in entry_folders(leaderboard, names):
        entry, trials = read_entry(folder)
        suite = known.of_hash(entry.info.suite_hash)
        checks = check_entry(folder, entry, trials, suite)
        problems = failed(checks)
        record = None
        if is_rejudged and suite is not None and not problems:
            record, found = _rejudged(folder, suite, sandbox, work, held_out)
            write_verification(leaderboard, record, found)
        elif (earlier := read_verification(leaderboard, entry.name)) is not None:
            record = earlier[0]
        if record is not None and not record.is_confirmed:
            problems += [
                f"{c.candidate}: {c.text}" for c in record.candidates if not c.is_confirmed
            ]
        facts.append({"entry": entry.name, "by": entry.by, "checks": checks,
                      "standing": _standing(checks, record), "problems": problems,
                      "verification": record})  # fmt: skip
        if not as_json:
            _print_entry(entry.name, checks, record)
    if as_json:
        print_json(facts)
    bad = [str(fact["entry"]) for fact in facts if fact["problems"]]
    if bad:
        fail(f"{len(bad)} of {len(facts)} entries do not hold: {', '.join(bad)}")


def _rejudged(
    folder: Path, suite: Suite, sandbox: Sandbox, work: Path, held_out: Suite | None
) -> tuple[EntryVerification, list[Trial]]:
    from passnet.bench.leaderboard.entry import read_entry
    from passnet.bench.leaderboard.rejudging import rejudge
    from passnet.core.terminal.progress import progress

    entry, _ = read_entry(folder)
    has_code = any(each.kind == "passes" for each in entry.info.candidates)
    if has_code and sandbox.name == "none":
        raise InputError(
            f"entry {entry.name} has code of others, and nothing confines it here: {sandbox.reason}"
        )
    print_notes(suite.notes)
    settings = replace(entry.info.settings, sandbox=sandbox.name)
    with progress(f"judging {entry.name}", len(suite.graphs)) as step:
        return rejudge(folder, suite, settings, work / entry.name, held_out, step)


def _standing(checks: list[EntryCheck], record: EntryVerification | None) -> str:
    """What an entry's numbers rest on, in a word or two."""
    if not all(check.is_passed for check in checks):
        return "does not hold"
    if record is None:
        return "from records"
    return "verified" if record.is_confirmed else "not confirmed"


def _print_entry(name: str, checks: list[EntryCheck], record: EntryVerification | None) -> None:
    from passnet.core.terminal.visible_text import visible

    click.echo(f"{name}: {_standing(checks, record)}")
    for check in checks:
        click.echo(f"  {'ok  ' if check.is_passed else 'BAD '} {check.name}: {visible(check.text)}")
    for each in record.candidates if record else ():
        found = "not timed" if each.found is None else f"AS {each.found.score:.3f}"
        text = visible(f"{each.candidate}: {each.text}, {found} here")
        click.echo(f"  {'ok  ' if each.is_confirmed else 'BAD '} judged again: {text}")
