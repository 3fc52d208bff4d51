"""`passnet optimize audit`: nets of a corpus, optimised and compared with eager PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.output import print_notes, print_result, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.process import JobLimits
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.optimizer.settings import OptimizeSettings
    from passnet_audit.nets.outcome import CaseOutcome


@dataclass(frozen=True, kw_only=True)
class OptimizeAuditOptions:
    """Options of `passnet optimize audit`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1, required=False)

    backends: tuple[str, ...] = opt.field(("default",), option="backend", metavar="NAME")
    """Audit this backend alone; default is the choice among all, each is that and all of them."""

    sample: int = 1
    """Audit one net in so many."""

    settings: OptimizeSettings = opt.fields_of(
        "passnet.optimizer.settings:OptimizeSettings",
        *("budget_s", "threads", "seconds"),
        threads=1,
        seconds=0.2,
    )

    limits: JobLimits = opt.job_limits(seconds=900.0)

    out: Path | None = None
    """Keep the outcome of each net in this folder."""

    plan: RunPlan = opt.plan("num_workers", "resume", "retry", jobs=1)

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("audit")
def optimize_audit(options: OptimizeAuditOptions) -> None:
    """Optimise the nets of a corpus, and compare their calls with eager PyTorch.

    PATHS are Python files, each with a net and calls that its example does not show, or folders of
    them, such as tests/nets of passnet's repository. The code of each runs in a process of its own;
    several at a time disturb each other's times. Exits with 1 if a net came out wrong, changed or
    crashed, or if the default choice makes fewer than 90 % of the harmless nets faster.
    """
    from passnet.core.terminal.console import PIPE_WIDTH
    from passnet.core.terminal.progress import progress
    from passnet_audit.nets.case import find_cases
    from passnet_audit.nets.outcome import complaints, totals
    from passnet_audit.nets.run import choices, run_audit
    from passnet_audit.nets.tables import audit_lines, audit_table

    if not options.paths:
        raise InputError(
            "give files of nets, or folders of them: tests/nets of passnet's repository, or your "
            "own; docs/optimize.md describes them"
        )
    cases = find_cases(options.paths)[:: options.sample]
    asked = choices(options.backends)
    left_out = {str(case.path): case.missing for case in cases if case.missing}
    with progress("auditing", (len(cases) - len(left_out)) * len(asked)) as step:

        def report(outcome: CaseOutcome) -> None:
            step(f"{Path(outcome.case).stem}: {outcome.outcome}")

        plan = replace(options.plan, progress=report)
        outcomes = run_audit(cases, asked, options.settings, options.limits, options.out, plan)
    print_notes(f"left out, as {name} is not installed: {path}" for path, name in left_out.items())
    if not options.json:
        print_tables([audit_table(outcomes)], options.wide)
    result = {"totals": totals(outcomes), "left_out": left_out, "outcomes": outcomes}
    print_result(options.json, result, audit_lines(outcomes, PIPE_WIDTH))
    if failed := list(complaints(outcomes)):
        fail("; ".join(failed))
