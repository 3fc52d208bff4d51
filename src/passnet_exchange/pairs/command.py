"""`passnet judge pair` and `passnet suite import`: files that others write."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_notes, print_result
from passnet.core.terminal.counts import counted
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.process import JobLimits
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet_exchange.pairs.kernelbench import ImportedSuite
    from passnet_exchange.pairs.pair import PairResult

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def bytes_of(text: str) -> int:
    """Return the bytes in a text such as 67108864 or 64M; raise InputError for others.

    Examples:
        >>> bytes_of("64M")
        67108864
    """
    match = re.fullmatch(r"(\d{1,15})([KMG]?)(?:iB)?", text.strip())
    if match is None or not int(match[1]):
        raise InputError(f"{text!r} is no number of bytes; write 67108864 or 64M")
    return int(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, kw_only=True)
class JudgePairOptions:
    """Options of `passnet judge pair`."""

    reference: Path = opt.argument()

    candidate: Path = opt.argument()

    settings: RunSettings = opt.judging_of(
        *(path for path in opt.JUDGING if path != "judge.rules"), *opt.LIMITS
    )

    level: int = opt.field(-5, option="tolerance", least=-10, most=4, metavar="T")
    """Take outputs as right from this tolerance level on."""

    is_evaluated: bool = opt.field(False, option="eval-mode")
    """Put both modules in evaluation mode; otherwise each stays in the mode of its file."""

    timeout: float = 180.0
    """Give up on the reference's capture after this many seconds."""

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("pair")
def judge_pair_command(options: JudgePairOptions) -> None:
    """Judge the file CANDIDATE against the file REFERENCE, both as KernelBench has them.

    REFERENCE defines Model, get_inputs and get_init_inputs, and CANDIDATE ModelNew; or REFERENCE
    defines reference and inputs, and CANDIDATE candidate. REFERENCE is trusted; CANDIDATE runs in
    the sandbox. Exits with 0 whatever the judgement is, and with 1 if nothing could be judged.
    """
    from passnet.core.jobs.process import JobLimits
    from passnet.judge.score.status import MACHINES_FAULT
    from passnet_exchange.pairs.pair import judge_pair

    settings = replace(options.settings, sandbox=options.sandbox.name)
    print_notes((), options.sandbox)
    limits = JobLimits(options.timeout, settings.judge.limits.memory_mib)
    result = judge_pair(
        options.reference,
        options.candidate,
        settings,
        limits,
        options.is_evaluated,
        options.level,
    )
    print_result(options.json, result, _lines(result))
    if result.status in MACHINES_FAULT:
        fail(f"nothing could be judged: {result.error}")


def _lines(result: PairResult) -> list[str]:
    lines = [f"{result.status}: {result.error}" if result.error else result.status]
    if result.speedup is not None:
        interval = f"{result.speedup_low:.3f} to {result.speedup_high:.3f}"
        times = f"{result.reference_ms:.4g} ms to {result.candidate_ms:.4g} ms"
        lines.append(f"speedup {result.speedup:.3f} ({interval}), {times}")
    for found in result.findings:
        place = f" at {found.place}" if found.place else ""
        lines.append(f"{found.weight} {found.name}{place}: {found.evidence}")
    return lines


@click.group("import", cls=ExtensibleGroup)
def import_group() -> None:
    """Make suites of the problems of other projects."""


@dataclass(frozen=True, kw_only=True)
class ImportKernelbenchOptions:
    """Options of `passnet suite import kernelbench`."""

    folder: Path = opt.argument()

    out: Path
    """Write the suite to this file; NAME.parquet makes a suite called NAME."""

    max_bytes: int = opt.field(
        "64M", option="max-bytes", type=click.STRING, convert=bytes_of, metavar="BYTES"
    )
    """Reduce sizes until arguments and outputs take at most this many bytes, such as 64M."""

    levels: tuple[int, ...] = opt.field((), option="level", metavar="NUMBER")
    """Take only this level; by default all of them."""

    limits: JobLimits = opt.job_limits(180.0)

    plan: RunPlan = opt.plan("num_workers", "resume", "retry", "executor", jobs=1)

    json: bool = opt.shared("json")


@opt.command("kernelbench", import_group)
def import_kernelbench_command(options: ImportKernelbenchOptions) -> None:
    """Make a suite of the problems in FOLDER, a checkout of KernelBench.

    Integers that a problem's file assigns outside its functions are halved, the largest first,
    until the problem fits --max-bytes. Such problems are named as reduced. Problems that give no
    graph are left out, each with the reason. Every file runs in a limited process.
    """
    from passnet.core.terminal.progress import progress
    from passnet_exchange.pairs.kernelbench import import_kernelbench

    if options.out.suffix != ".parquet":
        raise InputError(f"{options.out}: a suite is a .parquet file; its stem is the suite's name")
    imported = import_kernelbench(
        options.folder,
        options.levels,
        options.max_bytes,
        options.out,
        options.limits,
        options.plan,
        partial(progress, "capturing problems"),
    )
    print_result(options.json, _facts(imported), _import_lines(imported, options.out))


def _facts(imported: ImportedSuite) -> dict[str, object]:
    """Return an import as JSON has it: its suite, and every problem but for its graph."""
    return {
        "suite": imported.suite.name,
        "content_hash": imported.suite.content_hash,
        "problems": [
            {
                "name": each.name,
                "task": each.task,
                "num_bytes": each.problem.num_bytes,
                "whole_bytes": each.problem.whole_bytes,
                "reduced": each.problem.reduced,
                "evaluated": bool(each.problem.binding and each.problem.binding.is_evaluated),
                "positive": each.problem.positive,
                "error": each.problem.error,
            }
            for each in imported.problems
        ],
        "other_files": imported.other_files,
    }


def _import_lines(imported: ImportedSuite, out: Path) -> list[str]:
    num_reduced = sum(bool(each.problem.reduced) for each in imported.problems)
    return [
        *(f"reduced {each.name}: {each.changes}" for each in imported.problems if each.changes),
        *(f"LEFT OUT {each.name}: {each.problem.error}" for each in imported.left_out),
        *(f"LEFT OUT {name}: its name is not like 1_Name.py" for name in imported.other_files),
        f"{counted(len(imported.suite.graphs), 'problem')}, {num_reduced} of them reduced, "
        f"{len(imported.left_out) + len(imported.other_files)} left out, in {out}",
    ]
