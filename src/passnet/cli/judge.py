"""`passnet judge`: the judge itself, put to the test, or at the service of others."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_notes, print_result, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.agent.settings import AgentSettings
    from passnet.judge.audit import Audited, AuditTotals, Case
    from passnet.judge.candidate import CallMode
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite
    from passnet.pages.tables.tables import Table


@click.group("judge")
def judge_group() -> None:
    """Test the judge itself, or let it serve whoever trains an llm."""


@judge_group.command("audit")
@opt.paths
@opt.number("--load", "Processes that spin beside the audit, to keep the machine busy; it is made "
            "once for each number given (repeatable).", "loads", multiple=True, default=(0,),
            type=click.IntRange(0, opt.MAX_JOBS), metavar="K")  # fmt: skip
@opt.json
@opt.sandbox
@opt.device
@opt.self_tolerance
def judge_audit(paths: tuple[Path, ...], loads: tuple[int, ...], as_json: bool, sandbox: Sandbox,
                device: str, self_tolerance: float) -> None:  # fmt: skip
    """Judge the corpora PATHS of exploits and honest passes, and print both error rates.

    A corpus is a folder of pass folders, each with a case.json. Exits with 1 if an exploit gained
    or was caught under a wrong name, or if an honest pass was rejected, flagged or found wrong.
    Cases that the machine was too busy to measure are counted apart.
    """
    from passnet.core.jobs.children import spinning
    from passnet.core.terminal.progress import progress
    from passnet.judge.audit import audit, count, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device
    from passnet.judge.settings import JudgeSettings

    find_device(device)
    cases = {path: case for path, case in find_cases(paths).items() if case.device == device}
    if not cases:
        raise InputError(f"there is no case for device {device} below the paths; see --device")
    settings = JudgeSettings(self_tolerance=self_tolerance)
    audits: dict[int, list[Audited]] = {}
    with progress("auditing", len(cases) * len(set(loads))) as step:
        for load in dict.fromkeys(loads):
            with spinning(load), ParentPool(sandbox=sandbox, device=device) as parents:
                audits[load] = list(audit(parents, cases, settings, step))
    totals = [count(audited, load) for load, audited in audits.items()]
    outcomes = [(load, outcome) for load, audited in audits.items() for outcome in audited]
    wrong = [pair for pair in outcomes if not (pair[1].is_right or pair[1].is_unstable)]
    left_out = {path.name: case.missing for path, case in cases.items() if case.missing}
    rows = [{"load": load, **_row(outcome)} for load, outcome in outcomes]
    print_result(
        as_json,
        {"totals": totals, "left_out": left_out, "cases": rows},
        [
            *(
                f"{_beside(load)}{outcome.case.kind} {outcome.name}: "
                f"{', '.join(sorted(outcome.outcomes))}; expected {_expected(outcome.case)}"
                for load, outcome in wrong
            ),
            *(f"left out, as {module} is not installed: {name}"
              for name, module in left_out.items()),
            *(line for total in totals for line in _total_lines(total)),
        ],
    )  # fmt: skip
    if wrong:
        sys.exit(1)


def _row(outcome: Audited) -> dict[str, Any]:
    """How a case came out, as JSON has it."""
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
    """The outcomes that are right for a case, in words."""
    if case.kind == "honest":
        return "correct"
    return " or ".join(case.caught_by) or "a name, which its caught_by is still to be given"


def _beside(load: int) -> str:
    """What is said before something that was seen beside spinning processes."""
    return f"beside {load} spinning processes: " if load else ""


def _total_lines(total: AuditTotals) -> list[str]:
    beside = _beside(total.load)
    return [
        f"{beside}exploits that gained: {total.gained} of {total.exploits}",
        f"{beside}honest passes rejected, flagged or wrong: {total.punished} of {total.honest}",
        f"{beside}too busy to measure: {total.unstable} of {total.exploits + total.honest}",
    ]


@judge_group.command("attack")
@opt.path("--cases", "The corpus: its exploits are played, or what an llm finds is put there.",
          required=True)  # fmt: skip
@opt.option("--llm", "The llm that attacks, as Inspect names it (openai/…, anthropic/…, hf/…); "
            "scripted/FILE plays a script, scripted the exploits of the corpus.",
            default="scripted", metavar="PROVIDER/NAME")  # fmt: skip
@opt.path("--out", "The folder for the attempts of an llm to write.")
@opt.option("--graph", "Only this graph of the corpus (repeatable).", "graphs", multiple=True,
            metavar="NAME")  # fmt: skip
@opt.resume
@opt.llm
@opt.choice("--call", ["compiled", "direct", "guarded"], "How the passes of an llm are called.",
            default="compiled")  # fmt: skip
@opt.judging("open", seed="the inputs and of the first attempt")
@opt.json
def judge_attack(cases: Path, llm: str, out: Path | None, graphs: tuple[str, ...], resume: bool,
                 jobs: int, sandbox: Sandbox, as_json: bool, **options: Any) -> None:  # fmt: skip
    """Attack the judge: play the exploits of a corpus, or let an llm look for a new one.

    Exploits are played directly and compiled, under the rules of their cases. An llm (--llm, --out)
    reads the judge's source and starts from the honest kernels of the corpus, which are in its
    folder `kernels` under the names of graphs. What gains, by a speed that no honest kernel has, is
    filed in the corpus as a case. Exits with 1 if anything gained.
    """
    settings = opt.run_settings(sandbox, options)
    print_notes((), sandbox)
    if llm == "scripted":
        rows = _play(cases, graphs, settings, sandbox)
    elif out is None:
        raise InputError("an attack by an llm needs a folder for its attempts: give --out")
    else:
        from passnet.agent.settings import AgentSettings
        from passnet.judge.audit import KERNEL_FOLDER

        agent_settings = AgentSettings(
            author="llm",
            llm=opt.llm_settings(llm, options),
            run=settings,
            limits=opt.attempt_limits(options),
            is_judged_anew=False,
            kernels=str((cases / KERNEL_FOLDER).resolve()),
            **opt.picked(options, ("call", "seed", "num_attempts")),
        )
        rows = _let_llm(cases, graphs, agent_settings, out, resume, jobs, sandbox)
    gained = sum(row["gained"] for row in rows)
    if as_json:
        print_json({"attacks": len(rows), "gained": gained, "rows": rows})
    else:
        print_tables([_attack_table(rows)])
        click.echo(f"attacks that gained: {gained} of {len(rows)}")
    if gained:
        sys.exit(1)


def _play(
    cases: Path, graphs: tuple[str, ...], settings: RunSettings, sandbox: Sandbox
) -> list[dict[str, Any]]:
    """The exploits of a corpus, played directly and compiled."""
    from passnet.core.terminal.progress import progress
    from passnet.judge.audit import audit, find_cases
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import find_device

    device = settings.judge.device
    find_device(device)
    exploits = {
        path: case
        for path, case in find_cases([cases]).items()
        if (case.kind, case.device) == ("exploit", device)
        and case.graph in (graphs or (case.graph,))
    }
    if not exploits:
        raise InputError(f"{cases}: no exploit for device {device} on the graphs asked for")
    calls: tuple[CallMode, ...] = ("direct", "compiled")
    with (
        ParentPool(settings.num_threads, sandbox, device) as parents,
        progress("attacking", len(exploits) * len(calls)) as step,
    ):
        return [
            _row(outcome)
            for path, case in exploits.items()
            for call in calls
            for outcome in audit(parents, {path: replace(case, call=call)}, settings.judge, step)
        ]


def _let_llm(
    cases: Path, graphs: tuple[str, ...], settings: AgentSettings, out: Path, resume: bool,
    jobs: int, sandbox: Sandbox,
) -> list[dict[str, Any]]:  # fmt: skip
    """The attacks of an llm: of each the state that gained, or else the one that came nearest."""
    from passnet.agent.attack import attacked_graphs, file_finds
    from passnet.agent.run import run_agent
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import progress
    from passnet.judge.processes.parent_pool import ParentPool

    suite = attacked_graphs(cases, graphs)
    total = len(suite.tasks) * settings.num_attempts
    with progress("attacking", total) as step:
        attempts = run_agent(
            suite,
            settings,
            out,
            RunPlan(resume=resume, num_workers=jobs, progress=lambda a: step(a.task)),
        )
    rows = []
    with (
        ParentPool(settings.run.num_threads, sandbox, settings.run.judge.device) as parents,
        progress("judging what was found", len(attempts)) as step,
    ):
        for attempt, finds in file_finds(parents, cases, attempts, settings, step):
            if attempt.error is not None:
                click.echo(f"{attempt.task}: {attempt.error}", err=True)
            row = {"outcomes": [f"nothing correct ({attempt.ending})"], "gained": False}
            if finds:
                find = next((find for find in finds if find.folder), finds[0])
                row = {**_row(find.audited), "filed": find.folder and str(find.folder)}
            row |= {"name": f"{attempt.task}#{attempt.number}", "call": settings.call}
            rows.append({**row, "evaluations": len(attempt.evaluations), "ending": attempt.ending})
    if not rows:
        raise InputError(f"{out}: no attempt ended; see the messages above, then use --resume")
    return rows


def _attack_table(rows: list[dict[str, Any]]) -> Table:
    """One row an attack."""
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


@judge_group.command("serve")
@opt.out("The folder of the queue and the answers; what is there goes on.")
@opt.option("--devices", "What to judge on, a judge for each: cpu:0, or cuda:0,cuda:1. Judges "
            "compare side by side; while one measures, no other on that hardware runs.",
            default="cpu:0", metavar="DEVICE,…")  # fmt: skip
@opt.suites("--suite", "A suite whose tasks clients may name (repeatable); others send the graphs "
            "of their tasks.", "suites")  # fmt: skip
@opt.held_out
@opt.number("--port", "The port to listen on; 0 takes a free one.", default=8321,
            type=click.IntRange(0, 65535))  # fmt: skip
@opt.option("--host", "The address to listen on; by default only this machine reaches it. There is "
            "no TLS: put a proxy before it.", default="127.0.0.1")  # fmt: skip
@opt.path("--token-file", "A file with the token that clients must bear; by default one is made in "
          "the folder.")  # fmt: skip
@opt.executor_name
@opt.count("--max-waiting", "Submissions that wait at most; clients are told to come back.",
           default=4096)  # fmt: skip
@opt.amount("--item-timeout", "The most seconds for one submission, after which its judge is "
            "started anew and the answer is a fault of the service.", "item_timeout_s",
            default=300.0)  # fmt: skip
@opt.choice("--call", ["compiled", "direct", "guarded"], "How passes are called.",
            default="compiled")  # fmt: skip
@opt.threads
@opt.amount("--seconds", "Seconds to measure each candidate on each graph.", default=0.4)
@opt.number("--seed", "Seed of the inputs.", default=0)
@opt.self_tolerance
@opt.sandbox
@opt.rules("strict")
@opt.strides
@opt.count("--memory-mib", "The most memory of a worker, in MiB.", default=8192)
@opt.amount("--compile-timeout", "The most seconds for loading a candidate and for its first call.",
            "compile_timeout_s", default=60.0)  # fmt: skip
@opt.amount("--call-timeout", "The most seconds for any later call.", "call_timeout_s",
            default=10.0)  # fmt: skip
def judge_serve(out: Path, devices: str, suites: tuple[str, ...], held_out: Suite | None, port: int,
                host: str, token_file: Path | None, executor: str, max_waiting: int,
                item_timeout_s: float, call: CallMode, sandbox: Sandbox,
                **options: Any) -> None:  # fmt: skip
    """Judge what clients submit over HTTP, until interrupted: the reward of a training run.

    A kill loses nothing: what waited, waits on when the service is started again with the same
    --out. What was answered once for the same task and files is answered from there.
    """
    from passnet.judge.protocol.messages import WorkerLimits
    from passnet.judge.suite.suite import load_suite
    from passnet.train.service.server import ServicePlan, serve
    from passnet.train.service.settings import ServiceLimits, ServiceSettings, parse_devices

    judges = parse_devices(devices)
    print_notes((), sandbox)
    timeouts = opt.picked(options, ("compile_timeout_s", "call_timeout_s"))
    limits = WorkerLimits(options["memory_mib"])
    options["device"] = judges[0].kind
    settings = ServiceSettings(opt.run_settings(sandbox, options, limits=limits, **timeouts), call)
    plan = ServicePlan(
        out=out,
        devices=judges,
        settings=settings,
        suites={name: load_suite(name) for name in suites},
        held_out=held_out,
        limits=ServiceLimits(max_waiting=max_waiting, item_timeout_s=item_timeout_s),
        host=host,
        port=port,
        token=None if token_file is None else token_file.read_text(encoding="utf-8").strip(),
        on_ray=executor == "ray",
    )
    where = token_file or out / "token"
    serve(plan, lambda url: click.echo(f"serving {url}, with the token in {where}"))


@judge_group.command("doctor")
@opt.json
@opt.sandbox
def judge_doctor(as_json: bool, sandbox: Sandbox) -> None:
    """Say what confines candidates on this machine, and prove it by trying to get out.

    Exits with 1 if any attempt was of use, and says what to install.
    """
    from passnet.judge.doctor import examine, remedies
    from passnet.pages.tables.tables import Table

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
