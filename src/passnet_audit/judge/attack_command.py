"""`passnet judge attack`: exploits played, or an LLM that looks for one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_json, print_notes, print_tables, say
from passnet.errors import InputError
from passnet_audit.judge.audit_command import case_row

if TYPE_CHECKING:
    from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.candidate import CallMode
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.pages.tables.tables import Table


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

    wide: bool = opt.shared("wide")


@opt.command("attack")
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
        print_tables([_attack_table(rows)], options.wide)
        say(f"attacks that gained: {gained} of {len(rows)}")
    if gained:
        sys.exit(1)


def _play(options: JudgeAttackOptions) -> list[dict[str, Any]]:
    """Play the exploits of a corpus directly and compiled."""
    from passnet.core.terminal.progress import progress
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device
    from passnet_audit.judge.audit import audit, find_cases

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
            case_row(outcome)
            for path, case in exploits.items()
            for call in calls
            for outcome in audit(parents, {path: replace(case, call=call)}, settings.judge, step)
        ]


def _attack_settings(options: JudgeAttackOptions) -> AgentSettings:
    from passnet_audit.judge.audit import KERNEL_FOLDER

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
    from passnet.agent.run import run_agent
    from passnet.core.terminal.progress import progress
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet_audit.judge.attack import attacked_graphs, file_finds

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
                say(f"{attempt.task}: {attempt.error}", err=True)
            row = {"outcomes": [f"nothing correct ({attempt.ending})"], "gained": False}
            if finds:
                find = next((find for find in finds if find.folder), finds[0])
                row = {**case_row(find.audited), "filed": find.folder and str(find.folder)}
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
    table = Table("Attacks", heads, least=("call", "came out as"))
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
