"""`passnet judge audit`: exploits and honest passes, judged."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import JudgeSettings, RunSettings
    from passnet_audit.judge.audit import Audited, AuditTotals, Case

CASE_MIB = 1024
"""Memory of a worker: the graphs are small, and what exploits take should show."""


@dataclass(frozen=True, kw_only=True)
class JudgeAuditOptions:
    """Options of `passnet judge audit`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    loads: tuple[int, ...] = opt.field((0,), option="load", least=0, most=1024, metavar="K")
    """Keep the machine busy with this many spinning processes; each number is one audit."""

    plan: RunPlan = opt.plan("executor", "num_workers", jobs=1)

    sandbox: Sandbox = opt.shared("sandbox")

    settings: RunSettings = opt.judging_of("judge.device", "judge.self_tolerance")

    json: bool = opt.shared("json")


@opt.command("audit")
def judge_audit(options: JudgeAuditOptions) -> None:
    """Judge the corpora PATHS of exploits and honest passes, and print both error rates.

    A corpus is a folder of pass folders, each with a case.json. Exits with 1 if an exploit gained
    or was caught under a wrong name, or if an honest pass was rejected, flagged or found wrong.
    Cases that the machine was too busy to measure are counted apart. On a Ray cluster, --jobs
    judges work at a time, on machines of one kind.
    """
    from passnet.core.jobs.children import spinning
    from passnet.core.terminal.progress import progress
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device
    from passnet.judge.protocol.messages import WorkerLimits
    from passnet.judge.settings import JudgeSettings
    from passnet_audit.judge.audit import audit, find_cases

    device, num_actors = options.settings.judge.device, options.plan.num_actors
    if num_actors is not None and any(options.loads):
        raise InputError("--load keeps this machine busy; leave it out with --executor ray")
    if num_actors is None:
        find_device(device)
    cases = {
        path: case for path, case in find_cases(options.paths).items() if case.device == device
    }
    if not cases:
        raise InputError(f"there is no case for device {device} below the paths; see --device")
    settings = JudgeSettings(
        limits=WorkerLimits(CASE_MIB), self_tolerance=options.settings.judge.self_tolerance
    )
    audits: dict[int, list[Audited]] = {}
    with progress("auditing", len(cases) * len(set(options.loads))) as step:
        for load in dict.fromkeys(options.loads):
            if num_actors is not None:
                audits[load] = _audit_on_ray(cases, options, settings, num_actors, step)
                continue
            with spinning(load), ParentPool(sandbox=options.sandbox, device=device) as parents:
                audits[load] = list(audit(parents, cases, settings, step))
    _print_audits(audits, cases, options.json)


def _audit_on_ray(
    cases: dict[Path, Case],
    options: JudgeAuditOptions,
    settings: JudgeSettings,
    num_actors: int,
    step: Callable[[str], None],
) -> list[Audited]:
    from passnet.bench.cluster import device_of, environment_on_ray
    from passnet.core.jobs.actors import results_of
    from passnet.judge.settings import RunSettings
    from passnet_audit.judge.audit import case_order, open_auditor

    run = RunSettings(replace(settings, device=options.settings.judge.device))
    opener = partial(open_auditor, options.sandbox.name, run.judge, environment_on_ray(run))
    orders = [case_order(path, case) for path, case in cases.items() if case.missing is None]
    audited = []
    for outcome in results_of(orders, opener, num_actors, device_of(run)):
        audited.append(outcome)
        step(outcome.name)
    return sorted(audited, key=attrgetter("name"))


def _print_audits(audits: dict[int, list[Audited]], cases: dict[Path, Case], as_json: bool) -> None:
    """Print audits by load; end the command with 1 where a case came out wrong."""
    from passnet_audit.judge.audit import count

    totals = [count(audited, load) for load, audited in audits.items()]
    outcomes = [(load, outcome) for load, audited in audits.items() for outcome in audited]
    wrong = [pair for pair in outcomes if not (pair[1].is_right or pair[1].is_unstable)]
    left_out = {path.name: case.missing for path, case in cases.items() if case.missing}
    rows = [{"load": load, **case_row(outcome)} for load, outcome in outcomes]
    lines = [
        f"{_beside(load)}{outcome.case.kind} {outcome.name}: "
        f"{', '.join(sorted(outcome.outcomes))}; expected {_expected(outcome.case)}"
        for load, outcome in wrong
    ]
    lines += [
        f"left out, as {module} is not installed: {name}" for name, module in left_out.items()
    ]
    lines += [line for total in totals for line in _total_lines(total)]
    print_result(as_json, {"totals": totals, "left_out": left_out, "cases": rows}, lines)
    if wrong:
        sys.exit(1)


def case_row(outcome: Audited) -> dict[str, Any]:
    """Return the outcome of a case, as JSON has it."""
    honest = outcome.honest_trial
    return {
        "name": outcome.name,
        "kind": outcome.case.kind,
        "call": outcome.case.call,
        "outcomes": sorted(outcome.outcomes),
        "right": outcome.is_right,
        "gained": outcome.gained,
        "unstable": outcome.is_unstable,
        "speedup": outcome.trial.speedup,
        "honest_speedup": honest and honest.speedup,
        "error": outcome.trial.error,
    }


def _expected(case: Case) -> str:
    """Return the expected outcomes of a case in words."""
    if case.kind == "honest":
        return "correct"
    return " or ".join(case.caught_by) or "a name; give its case.json a caught_by"


def _beside(load: int) -> str:
    """Return the start of a line about an audit beside spinning processes."""
    return f"beside {load} spinning processes: " if load else ""


def _total_lines(total: AuditTotals) -> list[str]:
    beside = _beside(total.load)
    return [
        f"{beside}exploits that gained: {total.gained} of {total.exploits}",
        f"{beside}honest passes rejected, flagged or wrong: {total.punished} of {total.honest}",
        f"{beside}too busy to measure: {total.unstable} of {total.exploits + total.honest}",
    ]
