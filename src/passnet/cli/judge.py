"""`passnet judge`: the judge itself, put to the test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_result, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox


@click.group("judge")
def judge_group() -> None:
    """Test the judge itself: whether it catches exploits and leaves honest passes alone."""


@judge_group.command("audit")
@opt.paths
@opt.json
@opt.sandbox
@opt.device
@opt.self_tolerance
def judge_audit(
    paths: tuple[Path, ...], as_json: bool, sandbox: Sandbox, device: str, self_tolerance: float
) -> None:
    """Judge the corpora PATHS of exploits and honest passes, and print both error rates.

    A corpus is a folder of pass folders, each with a case.json. Exits with 1 if an exploit gained
    or was caught under a wrong name, or if an honest pass was rejected, flagged or found wrong.
    """
    from passnet.judge.audit import audit, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device
    from passnet.judge.settings import JudgeSettings
    from passnet.report.progress import progress

    find_device(device)
    cases = {path: case for path, case in find_cases(paths).items() if case.device == device}
    if not cases:
        raise InputError(f"there is no case for device {device} below the paths; see --device")
    settings = JudgeSettings(self_tolerance=self_tolerance)
    with (
        ParentPool(sandbox=sandbox, device=device) as parents,
        progress("auditing", len(cases)) as step,
    ):
        audited = list(audit(parents, cases, settings, step))
    exploits = [outcome for outcome in audited if outcome.case.kind == "exploit"]
    honest = [outcome for outcome in audited if outcome.case.kind == "honest"]
    wrong = [outcome for outcome in audited if not outcome.is_right]
    left_out = {path.name: case.missing for path, case in cases.items() if case.missing}
    gained = sum(outcome.gained for outcome in exploits)
    punished = sum(not outcome.is_right for outcome in honest)
    rows = [
        {
            "name": outcome.name,
            "kind": outcome.case.kind,
            "outcomes": sorted(outcome.outcomes),
            "right": outcome.is_right,
            "error": outcome.trial.error,
        }
        for outcome in audited
    ]
    print_result(
        as_json,
        {"exploits": len(exploits), "gained": gained, "honest": len(honest), "punished": punished,
         "left_out": left_out, "cases": rows},
        [
            *(
                f"{outcome.case.kind} {outcome.name}: {', '.join(sorted(outcome.outcomes))}; "
                f"expected {' or '.join(outcome.case.caught_by) or 'correct'}"
                for outcome in wrong
            ),
            *(f"left out, as {module} is not installed: {name}"
              for name, module in left_out.items()),
            f"exploits that gained: {gained} of {len(exploits)}",
            f"honest passes rejected, flagged or wrong: {punished} of {len(honest)}",
        ],
    )  # fmt: skip
    if wrong:
        sys.exit(1)


@judge_group.command("doctor")
@opt.json
@opt.sandbox
def judge_doctor(as_json: bool, sandbox: Sandbox) -> None:
    """Say what confines candidates on this machine, and prove it by trying to get out.

    Exits with 1 if any attempt was of use, and says what to install.
    """
    from passnet.judge.doctor import examine, remedies
    from passnet.report.tables import Table

    attempts = examine(sandbox)
    escaped = [attempt for attempt in attempts if not attempt.is_confined]
    remedy = remedies(sandbox)
    if as_json:
        print_json({"sandbox": sandbox.name, "attempts": attempts, "remedies": remedy})
    else:
        rows: list[tuple[str, ...]] = [
            (attempt.tried, "yes" if attempt.is_confined else "NO", attempt.by or "–")
            for attempt in attempts
        ]
        print_tables([Table(f"Sandbox: {sandbox.name}", ("tried", "confined", "by"), rows)])
        for sentence in (*remedy, f"attempts that were of use: {len(escaped)} of {len(attempts)}"):
            click.echo(sentence)
    if escaped:
        sys.exit(1)
