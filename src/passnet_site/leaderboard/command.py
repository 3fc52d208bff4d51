"""`passnet leaderboard`: runs as entries for pull requests, checked and judged again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_notes, say
from passnet.errors import InputError, PassnetError, no_such

if TYPE_CHECKING:
    from passnet.bench.run_record import BenchRunInfo
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite
    from passnet.judge.trial import Trial
    from passnet_site.leaderboard.entry_checks import EntryCheck
    from passnet_site.leaderboard.rejudging import EntryVerification


@click.group("leaderboard", cls=ExtensibleGroup)
def leaderboard_group() -> None:
    """Add runs to a leaderboard, check what others add, and judge it again."""


@dataclass(frozen=True, kw_only=True)
class LeaderboardAddOptions:
    """Options of `passnet leaderboard add`."""

    folder: Path = opt.argument()

    name: str
    """Give the entry this name."""

    sender: str
    """Name who sends the entry in."""

    candidates: tuple[str, ...] = opt.field((), option="candidate", metavar="NAME")
    """Add only this candidate of the run, by its name there."""

    leaderboard: Path = opt.shared("leaderboard")

    suites: tuple[Suite, ...] = opt.shared("suites")

    json: bool = opt.shared("json")


@opt.command("add", leaderboard_group)
def add_command(options: LeaderboardAddOptions) -> None:
    """Make the run in FOLDER an entry of a leaderboard, with its trials and pass folders.

    The run must be complete, and its numbers must follow from its raw times; else nothing is
    written, and the reasons are named.
    """
    from passnet.bench.in_nets import read_in_nets
    from passnet.core.records.folders import atomic_folder
    from passnet_site.leaderboard.entry import check_name, write_entry
    from passnet_site.leaderboard.entry_checks import check_run, failed
    from passnet_site.pages.measured import KnownSuites

    name, folder = options.name, options.folder
    check_name(name)
    info, trials = _run_of(folder, options.candidates)
    known = KnownSuites(options.suites)
    suite = known.of_hash(info.suite_hash)
    tasks = {trial.task for trial in trials}
    if suite is None and (whole := known.whole_of(info.suite, info.suite_hash, tasks)):
        raise InputError(
            f"{folder}: cannot be an entry. The run judged {len(tasks)} of the {len(whole.tasks)} "
            f"tasks of {whole.name}; run it without --task"
        )
    problems = failed(check_run(info, trials, suite))
    if problems or suite is None:
        raise InputError(f"{folder}: cannot be an entry. " + "; ".join(problems))
    target, in_nets = options.leaderboard / name, read_in_nets(folder)
    with atomic_folder(target) as partial:
        entry = write_entry(partial, name, options.sender, info, trials, suite, in_nets)
    if options.json:
        print_json(entry)
        return
    for candidate, score in entry.scores.items():
        text = "not timed" if score is None else f"AS {score.score:.3f}"
        say(f"{candidate}: {text}")
    say(f"written to {target}; check it with `passnet leaderboard verify`")


def _run_of(folder: Path, names: tuple[str, ...]) -> tuple[BenchRunInfo, list[Trial]]:
    """Read a run, or the part of it that is about some candidates."""
    from passnet.bench.run_record import run_folder

    run = run_folder(folder)
    info, trials = run.read_info(), list(run.records().values())
    if not names:
        return info, trials
    known = [candidate.name for candidate in info.candidates]
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(f"{folder}: {no_such('candidate', missing[0], known)}")
    candidates = tuple(each for each in info.candidates if each.name in names)
    hashes = {name: text for name, text in info.code_hashes.items() if name in names}
    info = replace(info, candidates=candidates, code_hashes=hashes)
    return info, [trial for trial in trials if trial.candidate in names]


@dataclass(frozen=True, kw_only=True)
class LeaderboardVerifyOptions:
    """Options of `passnet leaderboard verify`."""

    names: tuple[str, ...] = opt.argument(nargs=-1, required=False, metavar="[ENTRY]...")

    leaderboard: Path = opt.shared("leaderboard")

    suites: tuple[Suite, ...] = opt.shared("suites")

    rejudge: bool = False
    """Judge the entries again on this machine; only that verifies them."""

    work: Path = Path("runs/rejudged")
    """With --rejudge, keep the runs in this folder, and go on with those in it."""

    held_out: Suite | None = opt.shared("held_out")

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("verify", leaderboard_group)
def verify_command(options: LeaderboardVerifyOptions) -> None:
    """Check the entries of a leaderboard from their records, or judge them again.

    Each ENTRY, all by default, gets its scores computed again from its raw times, and is checked
    for completeness, the suite's hash, the judge's version, settings and sources. With --rejudge
    its pass folders are then judged here in a sandbox. Exits with 1 if a check fails, the results
    here do not confirm the claims, or an entry cannot be judged.
    """
    from passnet_site.leaderboard.entry import entry_folders, read_entry
    from passnet_site.leaderboard.entry_checks import check_entry, failed
    from passnet_site.leaderboard.rejudging import read_verification, write_verification
    from passnet_site.pages.measured import KnownSuites

    known = KnownSuites(options.suites)
    facts: list[dict[str, object]] = []
    for folder in entry_folders(options.leaderboard, options.names):
        try:
            entry, trials = read_entry(folder)
        except InputError as cause:
            facts.append({"entry": folder.name, "standing": "unreadable", "problems": [str(cause)]})
            if not options.json:
                say(f"{folder.name}: unreadable\n  BAD  {cause}")
            continue
        suite = known.of_hash(entry.info.suite_hash)
        checks = check_entry(folder, entry, trials, suite)
        problems = failed(checks)
        record, fault = None, ""
        try:
            if options.rejudge and suite is not None and not problems:
                record, new_trials = _rejudged(folder, suite, options)
                write_verification(options.leaderboard, record, new_trials)
            elif (earlier := read_verification(options.leaderboard, entry.name)) is not None:
                record = earlier[0]
        except PassnetError as cause:
            record, fault = None, str(cause)
            problems.append(fault)
        if record is not None and not record.is_confirmed:
            problems += [
                f"{claim.candidate}: {claim.text}"
                for claim in record.candidates
                if not claim.is_confirmed
            ]
        facts.append(
            {
                "entry": entry.name,
                "by": entry.by,
                "checks": checks,
                "standing": _standing(checks, record),
                "problems": problems,
                "verification": record,
            }
        )
        if not options.json:
            _print_entry(entry.name, checks, record, fault)
    if options.json:
        print_json(facts)
    bad = [str(fact["entry"]) for fact in facts if fact["problems"]]
    if bad:
        fail(f"{len(bad)} of {len(facts)} entries do not hold: {', '.join(bad)}")


def _rejudged(
    folder: Path, suite: Suite, options: LeaderboardVerifyOptions
) -> tuple[EntryVerification, list[Trial]]:
    from passnet.core.terminal.progress import progress
    from passnet_site.leaderboard.board_settings import board_settings
    from passnet_site.leaderboard.entry import read_entry
    from passnet_site.leaderboard.rejudging import rejudge

    entry, _ = read_entry(folder)
    sandbox = options.sandbox
    has_code = any(each.has_code for each in entry.info.candidates)
    if has_code and sandbox.name == "none":
        raise InputError(
            f"entry {entry.name} has code of others, and there is no sandbox: {sandbox.reason}"
        )
    print_notes(suite.notes)
    settings = replace(board_settings(entry.info.settings), sandbox=sandbox.name)
    with progress(f"judging {entry.name}", len(suite.graphs)) as step:
        return rejudge(folder, suite, settings, options.work / entry.name, options.held_out, step)


def _standing(checks: list[EntryCheck], record: EntryVerification | None) -> str:
    """Return the basis of an entry's numbers, in a word or two."""
    if not all(check.is_passed for check in checks):
        return "does not hold"
    if record is None:
        return "from records"
    return "verified" if record.is_confirmed else "not confirmed"


def _print_entry(
    name: str, checks: list[EntryCheck], record: EntryVerification | None, fault: str
) -> None:
    say(f"{name}: {_standing(checks, record)}")
    for check in checks:
        say(f"  {'ok  ' if check.is_passed else 'BAD '} {check.name}: {check.text}")
    for each in record.candidates if record else ():
        found = "not timed" if each.found is None else f"AS {each.found.score:.3f}"
        text = f"{each.candidate}: {each.text}, {found} here"
        say(f"  {'ok  ' if each.is_confirmed else 'BAD '} judged again: {text}")
    if fault:
        say(f"  BAD  judged again: left out, {fault}")
