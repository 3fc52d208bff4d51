"""`passnet judge`: the judge itself, put to the test, or at the service of others."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from passnet.cli import fields as opt
from passnet.cli.output import print_json, print_notes, print_result, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.audit import Audited, AuditTotals, Case
    from passnet.judge.candidate import CallMode
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite
    from passnet.pages.tables.tables import Table
    from passnet.train.service.settings import JudgeDevice, ServiceLimits, ServiceSettings

    Devices: TypeAlias = tuple[JudgeDevice, ...]


@click.group("judge")
def judge_group() -> None:
    """Test the judge itself, or let it serve whoever trains an LLM."""


@dataclass(frozen=True, kw_only=True)
class JudgeAuditOptions:
    """Options of `passnet judge audit`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    loads: tuple[int, ...] = opt.field((0,), option="load", least=0, most=1024, metavar="K")
    """Keep the machine busy with this many spinning processes; each number is one audit."""

    sandbox: Sandbox = opt.shared("sandbox")

    settings: RunSettings = opt.judging_of("judge.device", "judge.self_tolerance")

    json: bool = opt.shared("json")


@opt.command("audit", judge_group)
def judge_audit(options: JudgeAuditOptions) -> None:
    """Judge the corpora PATHS of exploits and honest passes, and print both error rates.

    A corpus is a folder of pass folders, each with a case.json. Exits with 1 if an exploit gained
    or was caught under a wrong name, or if an honest pass was rejected, flagged or found wrong.
    Cases that the machine was too busy to measure are counted apart.
    """
    from passnet.core.jobs.children import spinning
    from passnet.core.terminal.progress import progress
    from passnet.judge.audit import audit, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device
    from passnet.judge.settings import JudgeSettings

    device = options.settings.judge.device
    find_device(device)
    cases = {
        path: case for path, case in find_cases(options.paths).items() if case.device == device
    }
    if not cases:
        raise InputError(f"there is no case for device {device} below the paths; see --device")
    settings = JudgeSettings(self_tolerance=options.settings.judge.self_tolerance)
    audits: dict[int, list[Audited]] = {}
    with progress("auditing", len(cases) * len(set(options.loads))) as step:
        for load in dict.fromkeys(options.loads):
            with spinning(load), ParentPool(sandbox=options.sandbox, device=device) as parents:
                audits[load] = list(audit(parents, cases, settings, step))
    _print_audits(audits, cases, options.json)


def _print_audits(audits: dict[int, list[Audited]], cases: dict[Path, Case], as_json: bool) -> None:
    """Print audits by load; end the command with 1 where a case came out wrong."""
    from passnet.judge.audit import count

    totals = [count(audited, load) for load, audited in audits.items()]
    outcomes = [(load, outcome) for load, audited in audits.items() for outcome in audited]
    wrong = [pair for pair in outcomes if not (pair[1].is_right or pair[1].is_unstable)]
    left_out = {path.name: case.missing for path, case in cases.items() if case.missing}
    rows = [{"load": load, **_row(outcome)} for load, outcome in outcomes]
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


def _row(outcome: Audited) -> dict[str, Any]:
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


@dataclass(frozen=True, kw_only=True)
class JudgeAttackOptions:
    """Options of `passnet judge attack`."""

    cases: Path
    """Play the exploits of this corpus, and file an LLM's finds in it."""

    llm: str = opt.field("scripted", metavar="PROVIDER/NAME")
    """Let this LLM attack, as Inspect names it (openai/…, anthropic/…, hf/…); scripted plays the
    exploits of the corpus, scripted/FILE a script.
    """

    out: Path | None = None
    """Write the attempts of an LLM to this folder."""

    graphs: tuple[str, ...] = opt.field((), option="graph", metavar="NAME")
    """Use only this graph of the corpus."""

    plan: RunPlan = opt.plan("resume", "num_workers", jobs=1)

    settings: AgentSettings = opt.agent_settings()

    llm_settings: LlmSettings = opt.llm_settings()

    turns: int | None = opt.shared("turns")

    limits: AgentLimits = opt.attempt_limits()

    run: RunSettings = opt.judging()

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("attack", judge_group)
def judge_attack(options: JudgeAttackOptions) -> None:
    """Attack the judge: play the exploits of a corpus, or let an LLM look for a new one.

    Exploits are played directly and compiled, under the rules of their cases. An LLM (--llm, --out)
    reads the judge's source and starts from the honest kernels in the corpus's folder `kernels`,
    named after graphs. An attack that gains, by a speed that no honest kernel has, is filed in the
    corpus as a case. Exits with 1 if anything gained.
    """
    print_notes((), options.sandbox)
    rows = _play(options) if options.llm == "scripted" else _let_llm(options)
    gained = sum(row["gained"] for row in rows)
    if options.json:
        print_json({"attacks": len(rows), "gained": gained, "rows": rows})
    else:
        print_tables([_attack_table(rows)])
        click.echo(f"attacks that gained: {gained} of {len(rows)}")
    if gained:
        sys.exit(1)


def _play(options: JudgeAttackOptions) -> list[dict[str, Any]]:
    """Play the exploits of a corpus directly and compiled."""
    from passnet.core.terminal.progress import progress
    from passnet.judge.audit import audit, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device

    settings = options.run
    device = settings.judge.device
    find_device(device)
    exploits = {
        path: case
        for path, case in find_cases([options.cases]).items()
        if (case.kind, case.device) == ("exploit", device)
        and case.graph in (options.graphs or (case.graph,))
    }
    if not exploits:
        raise InputError(f"{options.cases}: no exploit for device {device} on these graphs")
    calls: tuple[CallMode, ...] = ("direct", "compiled")
    with (
        ParentPool(settings.num_threads, options.sandbox, device) as parents,
        progress("attacking", len(exploits) * len(calls)) as step,
    ):
        return [
            _row(outcome)
            for path, case in exploits.items()
            for call in calls
            for outcome in audit(parents, {path: replace(case, call=call)}, settings.judge, step)
        ]


def _attack_settings(options: JudgeAttackOptions) -> AgentSettings:
    from passnet.judge.audit import KERNEL_FOLDER

    return replace(
        options.settings,
        llm=replace(options.llm_settings, name=options.llm),
        run=replace(options.run, sandbox=options.sandbox.name),
        limits=replace(options.limits, turns=opt.turns_of(options.turns, "llm")),
        seed=options.run.judge.seed,
        is_judged_anew=False,
        kernels=str((options.cases / KERNEL_FOLDER).resolve()),
    )


def _let_llm(options: JudgeAttackOptions) -> list[dict[str, Any]]:
    """Let an LLM attack; return its state that gained, or else the nearest, of each attempt."""
    from passnet.agent.attack import attacked_graphs, file_finds
    from passnet.agent.run import run_agent
    from passnet.core.terminal.progress import progress
    from passnet.judge.processes.parent_pool import ParentPool

    if options.out is None:
        raise InputError("an attack by an LLM needs a folder for its attempts: give --out")
    settings = _attack_settings(options)
    suite = attacked_graphs(options.cases, options.graphs)
    with progress("attacking", len(suite.tasks) * settings.num_attempts) as step:
        plan = replace(options.plan, progress=lambda attempt: step(attempt.task))
        attempts = run_agent(suite, settings, options.out, plan)
    rows = []
    with (
        ParentPool(settings.run.num_threads, options.sandbox, settings.run.judge.device) as parents,
        progress("judging the finds", len(attempts)) as step,
    ):
        for attempt, finds in file_finds(parents, options.cases, attempts, settings, step):
            if attempt.error is not None:
                click.echo(f"{attempt.task}: {attempt.error}", err=True)
            row = {"outcomes": [f"nothing correct ({attempt.ending})"], "gained": False}
            if finds:
                find = next((find for find in finds if find.folder), finds[0])
                row = {**_row(find.audited), "filed": find.folder and str(find.folder)}
            row |= {"name": f"{attempt.task}#{attempt.number}", "call": settings.call}
            rows.append({**row, "evaluations": len(attempt.evaluations), "ending": attempt.ending})
    if not rows:
        raise InputError(
            f"{options.out}: no attempt ended; see the messages above, then use --resume"
        )
    return rows


def _attack_table(rows: list[dict[str, Any]]) -> Table:
    """Return a table with a row for each attack."""
    from passnet.pages.tables.tables import Table

    heads = ("attack", "call", "credited", "honest kernel", "came out as", "gained")
    table = Table("Attacks", heads)
    for row in rows:
        speedups = (row.get("speedup"), row.get("honest_speedup"))
        table.rows.append((
            row["name"],
            row["call"],
            *("–" if speedup is None else f"{speedup:.2f}" for speedup in speedups),
            ", ".join(row["outcomes"]),
            row.get("filed") or "YES" if row["gained"] else "no",
        ))  # fmt: skip
    return table


def _parse_devices(text: str) -> tuple[JudgeDevice, ...]:
    from passnet.train.service.settings import parse_devices

    return parse_devices(text)


def _service_settings() -> ServiceSettings:
    from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
    from passnet.train.service.settings import ServiceSettings

    timing = TimingPlan(seconds=0.4)
    judge = JudgeSettings(
        timing=timing, rules="strict", compile_timeout_s=60.0, call_timeout_s=10.0
    )
    return ServiceSettings(RunSettings(judge))


def _service_limits() -> ServiceLimits:
    from passnet.train.service.settings import ServiceLimits

    return ServiceLimits()


@dataclass(frozen=True, kw_only=True)
class JudgeServeOptions:
    """Options of `passnet judge serve`."""

    out: Path
    """Keep the queue and the answers in this folder; a later service goes on from there."""

    devices: Devices = opt.field(
        option="device",
        type=click.STRING,
        convert=_parse_devices,
        default="cpu:0",
        metavar="DEVICE,…",
    )
    """Run a judge on each of these devices, such as cpu:0 or cuda:0,cuda:1. They compare side by
    side, but on the same hardware only one measures at a time.
    """

    suites: tuple[str, ...] = opt.field((), option="suite", metavar="SUITE")
    """Let clients name tasks of this suite."""

    held_out: Suite | None = opt.shared("held_out")

    port: int = opt.field(8321, least=0, most=65535)
    """Listen on this port; 0 takes a free one."""

    host: str = "127.0.0.1"
    """Listen on this address; by default only this machine reaches it. Without TLS: put a proxy
    before it.
    """

    token_file: Path | None = None
    """Read the token of clients from this file; by default one is made in the folder."""

    plan: RunPlan = opt.plan("executor")

    limits: ServiceLimits = opt.fields_of(_service_limits, "max_waiting", "item_timeout_s")

    settings: ServiceSettings = opt.fields_of(
        _service_settings,
        "call",
        *(f"run.{path}" for path in (*opt.JUDGING[1:], *opt.LIMITS)),
    )

    sandbox: Sandbox = opt.shared("sandbox")


@opt.command("serve", judge_group)
def judge_serve(options: JudgeServeOptions) -> None:
    """Judge submissions over HTTP until interrupted: the reward of a training run.

    Clients name tasks of the suites, or send the graphs of their tasks. A kill loses nothing: the
    queue waits on when the service is started again with the same --out. The same task and files
    are answered from the folder.
    """
    from passnet.judge.suite.suite import load_suite
    from passnet.train.service.server import ServicePlan, serve

    print_notes((), options.sandbox)
    run = options.settings.run
    judge = replace(run.judge, device=options.devices[0].kind)
    run = replace(run, judge=judge, sandbox=options.sandbox.name)
    token = options.token_file
    plan = ServicePlan(
        out=options.out,
        devices=options.devices,
        settings=replace(options.settings, run=run),
        suites={name: load_suite(name) for name in options.suites},
        held_out=options.held_out,
        limits=options.limits,
        host=options.host,
        port=options.port,
        token=None if token is None else token.read_text(encoding="utf-8").strip(),
        on_ray=options.plan.is_on_ray,
    )
    path = token or options.out / "token"
    serve(plan, lambda url: click.echo(f"serving {url}, with the token in {path}"))


@dataclass(frozen=True, kw_only=True)
class JudgeDoctorOptions:
    """Options of `passnet judge doctor`."""

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("doctor", judge_group)
def judge_doctor(options: JudgeDoctorOptions) -> None:
    """Name the sandbox of this machine, and prove it by trying to get out.

    Exits with 1 if an attempt succeeds, and says what to install.
    """
    from passnet.judge.doctor import examine, remedies
    from passnet.pages.tables.tables import Table

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
        print_tables([Table(f"Sandbox: {sandbox.name}", ("attempt", "prevented", "by"), rows)])
        for sentence in (*remedy, f"attempts that succeeded: {len(escaped)} of {len(attempts)}"):
            click.echo(sentence)
    if escaped:
        sys.exit(1)
