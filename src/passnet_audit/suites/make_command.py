"""`passnet suite make`: a suite made of a dataset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet_audit.suites.assembly import Assembled, AssemblyPlan


def _assembly_plan() -> AssemblyPlan:
    from passnet_audit.suites.assembly import AssemblyPlan

    return AssemblyPlan()


@dataclass(frozen=True, kw_only=True)
class SuiteMakeOptions:
    """Options of `passnet suite make`."""

    folder: Path = opt.argument()

    out: Path
    """Write the suite to this file; NAME.parquet makes a suite called NAME."""

    work: Path | None = None
    """Keep the results of admission in this folder; by default beside --out."""

    assembly: AssemblyPlan = opt.fields_of(
        _assembly_plan,
        "selection.kind",
        "selection.num_tasks",
        "selection.min_graphs",
        "selection.max_graphs",
        "max_gflops",
        "selection.max_mib",
    )

    quick: bool = False
    """Do not ask whether Inductor agrees with float64, for which graphs are compiled."""

    plan: RunPlan = opt.plan("num_workers", "resume", "executor")

    json: bool = opt.shared("json")


@opt.command("make")
def suite_make(options: SuiteMakeOptions) -> None:
    """Make a suite of the dataset in FOLDER.

    The tasks are those that add the most pairs of ops and are rare; each has one graph for every
    bucket of sizes and dtypes. Graphs on which a wrong program passes are left out, and so
    are unsound ones.
    """
    from passnet.core.terminal.progress import progress
    from passnet_audit.suites.assembly import AssemblyWork, assemble

    out, selection = options.out, options.assembly.selection
    if out.suffix != ".parquet":
        raise InputError(f"{out}: a suite is a .parquet file; its stem is the suite's name")
    if selection.min_graphs > selection.max_graphs:
        raise InputError("--min-graphs is above --max-graphs; no task has that many graphs")
    folder = options.work or out.with_suffix(".work")
    announce = partial(progress, "admitting subgraphs")
    work = AssemblyWork(out, folder, options.plan, announce)
    plan = replace(options.assembly, compiles=not options.quick)
    assembled = assemble(options.folder, plan, work)
    _print_assembled(assembled, out, options.json)


def _print_assembled(assembled: Assembled, out: Path, as_json: bool) -> None:
    from passnet_audit.suites.selection import domains_of, nets_of

    refused = [record for record in assembled.admissions if not record.is_admitted]
    degenerate = sum(bool(record.wrong) for record in refused)
    dtypes = Counter(sorted(row.dtype for task in assembled.tasks for row in task.rows))
    facts = {
        "tasks": len(assembled.tasks),
        "graphs": sum(dtypes.values()),
        "nets": len(nets_of(assembled.tasks)),
        "domains": domains_of(assembled.tasks),
        "dtypes": dict(dtypes),
        "tried": len(assembled.admissions),
        "degenerate": degenerate,
        "not_run": len(refused) - degenerate,
        "content_hash": assembled.suite.content_hash,
    }
    counts = [
        f"{name}: " + ", ".join(f"{group} {count}" for group, count in facts[name].items())
        for name in ("domains", "dtypes")
    ]
    lines = [
        f"{facts['tasks']} tasks, {facts['graphs']} graphs of {facts['nets']} nets in {out}",
        *counts,
        f"{facts['tried']} graphs tried: {degenerate} let a wrong program pass or are unsound, "
        f"{facts['not_run']} are too much work or do not run",
    ]
    print_result(as_json, facts, lines)
