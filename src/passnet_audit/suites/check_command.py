"""`passnet suite check`: wrong programs, NaN and rounding on the graphs of a suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.suite.suite import Suite


@dataclass(frozen=True, kw_only=True)
class SuiteCheckOptions:
    """Options of `passnet suite check`."""

    suite: Suite = opt.suite(is_argument=True)

    distribution: Literal["recorded", "fresh", "both"] = "both"
    """Run wrong programs on inputs seen at capture (recorded), inputs that the judge draws (fresh),
    or both, as the judge does.
    """

    quick: bool = False
    """Do not ask whether Inductor agrees with float64, for which graphs are compiled."""

    only_sound: bool = False
    """Run wrong programs only on graphs that get a domain; the others were admitted before."""

    out: Path | None = None
    """Write the sound version of the suite to this file, NAME.parquet."""

    new_version: str = ""
    """With --out, call that version this, such as 1.1."""

    work: Path | None = None
    """Keep the results in this folder, so that --resume can go on; suites may share one."""

    plan: RunPlan = opt.plan("num_workers", "resume", "executor", jobs=1)

    json: bool = opt.shared("json")


@opt.command("check")
def suite_check(options: SuiteCheckOptions) -> None:
    """Find the graphs of a suite that cannot tell a wrong program from a right one.

    Wrong programs (zeros, an argument returned as it is, an op left out, ...) are run on every
    graph. A graph on which one passes is called degenerate. A graph is unsound if more than 1 % of
    an output is NaN, or if Inductor and float64 disagree at t = -3 where eager PyTorch agrees;
    with --out, domains that make it sound are declared for its arguments, or it is left out.
    """
    from passnet.core.terminal.progress import progress
    from passnet.judge.suite.suite import write_suite
    from passnet_audit.suites.admission import INPUT_KINDS, AdmissionPlan
    from passnet_audit.suites.check import check_suite, sound_version

    suite, out, plan = options.suite, options.out, options.plan
    if out is not None and out.suffix != ".parquet":
        raise InputError(f"{out}: a suite is a .parquet file; its stem is the suite's name")
    if plan.resume and options.work is None:
        raise InputError("--resume goes on with the results in a folder; name it with --work")
    kinds = [kind for kind in INPUT_KINDS if options.distribution in (kind, "both")]
    with progress(f"checking {suite.name}", len(suite.graphs)) as step:
        questions = AdmissionPlan(compiles=not options.quick, runs_wrong=not options.only_sound)
        admissions = check_suite(suite, questions, options.work, plan, step)
    reasons = {admission.graph: admission.reasons(kinds) for admission in admissions}
    degenerate = {graph: programs for graph, programs in reasons.items() if programs}
    lines = [
        f"degenerate: {graph}: "
        + ", ".join(dict.fromkeys(f"{reason.program} ({reason.place})" for reason in programs))
        for graph, programs in degenerate.items()
    ]
    lines += [
        f"unsound: {admission.graph}: {admission.fault.name} ({admission.fault.place}, seed "
        f"{admission.fault.seed})"
        for admission in admissions
        if admission.fault is not None
    ]
    lines += [
        f"sound with: {admission.graph}: "
        + ", ".join(f"{name} {domain}" for name, domain in admission.domains.items())
        for admission in admissions
        if admission.domains
    ]
    num_unsound = sum(bool(admission.fault or admission.domains) for admission in admissions)
    total = f"{len(admissions)} graphs of {suite.name}"
    if not options.only_sound:
        inputs = f"{' and '.join(kinds)} inputs"
        lines += [f"{len(degenerate)} of {total} let a wrong program pass on {inputs}"]
    lines += [f"{num_unsound} of {total} are unsound as they are"]
    if out is not None:
        sound = sound_version(suite, admissions, out.stem, options.new_version)
        write_suite(out, sound)
        lines += [
            f"{out}: {len(sound.tasks)} tasks, {len(sound.graphs)} graphs, {sound.content_hash}"
        ]
    print_result(options.json, admissions, lines)
