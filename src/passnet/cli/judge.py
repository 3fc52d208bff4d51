"""`passnet judge`: the judge itself, put to the test."""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli.options import self_tolerance_option
from passnet.cli.output import print_json
from passnet.errors import InputError


@click.group("judge")
def judge_group() -> None:
    """What the judge is worth: exploits caught, honest passes left alone."""


@judge_group.command("audit")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--json", "as_json", is_flag=True, help="Print the outcome of every case as JSON.")
@click.option(
    "--sandbox",
    default="auto",
    show_default=True,
    help="What confines candidate code: auto, or the name of a sandbox.",
)
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]),
              help="Judge the cases for this device.")  # fmt: skip
@self_tolerance_option
@click.pass_context
def judge_audit(
    ctx: click.Context,
    paths: tuple[Path, ...],
    as_json: bool,
    sandbox: str,
    device: str,
    self_tolerance: float,
) -> None:
    """Judge the corpora PATHS of exploits and honest passes; print both rates.

    A corpus is a folder of pass folders with a case.json each. Exits 1 if an exploit gained or went
    under a wrong name, or an honest pass was rejected, flagged or found wrong.
    """
    from passnet.judge.audit import audit, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.processes.sandbox import find_sandbox
    from passnet.judge.protocol.device import find_device
    from passnet.judge.trial import JudgeSettings
    from passnet.report.progress import progress

    find_device(device)
    cases = {path: case for path, case in find_cases(paths).items() if case.device == device}
    if not cases:
        raise InputError(f"no case for device {device} there; see --device")
    settings = JudgeSettings(self_tolerance=self_tolerance)
    with (
        ParentPool(sandbox=find_sandbox(sandbox), device=device) as parents,
        progress("auditing", len(cases)) as step,
    ):
        audited = list(audit(parents, cases, settings, step))
    exploits = [item for item in audited if item.case.kind == "exploit"]
    honest = [item for item in audited if item.case.kind == "honest"]
    left_out = {path.name: case.missing for path, case in cases.items() if case.missing}
    wrong = [item for item in audited if not item.is_right]
    gained = sum(item.gained for item in exploits)
    punished = sum(not item.is_right for item in honest)
    if as_json:
        rows = [
            {
                "name": item.name,
                "kind": item.case.kind,
                "outcomes": sorted(item.outcomes),
                "right": item.is_right,
                "error": item.trial.error,
            }
            for item in audited
        ]
        print_json({"exploits": len(exploits), "gained": gained, "honest": len(honest),
                    "punished": punished, "left_out": left_out, "cases": rows})  # fmt: skip
    else:
        for item in wrong:
            came = ", ".join(sorted(item.outcomes))
            due = " or ".join(item.case.caught_by) or "correct"
            click.echo(f"{item.case.kind} {item.name}: {came}; due was {due}")
        for name, module in left_out.items():
            click.echo(f"left out, as {module} is not installed: {name}")
        click.echo(f"exploits that gained: {gained} of {len(exploits)}")
        click.echo(f"honest passes rejected, flagged or wrong: {punished} of {len(honest)}")
    if wrong:
        ctx.exit(1)
