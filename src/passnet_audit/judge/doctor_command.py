"""`passnet judge doctor`: the sandbox of this machine, tried."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_json, print_tables, say

if TYPE_CHECKING:
    from passnet.judge.processes.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class JudgeDoctorOptions:
    """Options of `passnet judge doctor`."""

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("doctor")
def judge_doctor(options: JudgeDoctorOptions) -> None:
    """Name the sandbox of this machine, and prove it by trying to get out.

    Exits with 1 if an attempt succeeds, and says what to install.
    """
    from passnet.pages.tables.tables import Table
    from passnet_audit.judge.doctor import examine, remedies

    sandbox = options.sandbox
    attempts = examine(sandbox)
    escaped = [attempt for attempt in attempts if not attempt.is_confined]
    remedy = remedies(sandbox)
    if options.json:
        print_json({"sandbox": sandbox.name, "attempts": attempts, "remedies": remedy})
    else:
        rows: list[tuple[str, ...]] = [
            (attempt.tried, "yes" if attempt.is_confined else "NO", attempt.by or "–")
            for attempt in attempts
        ]
        table = Table(f"Sandbox: {sandbox.name}", ("attempt", "prevented", "by"), rows)
        print_tables([table], options.wide)
        for sentence in (*remedy, f"attempts that succeeded: {len(escaped)} of {len(attempts)}"):
            say(sentence)
    if escaped:
        sys.exit(1)
