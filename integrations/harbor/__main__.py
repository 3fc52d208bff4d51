"""Write the tasks of a suite as a Harbor dataset: `python -m integrations.harbor --help`."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from integrations.harbor.export import HarborPlan, export_harbor
from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import say
from passnet.errors import PassnetError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import Suite


@dataclass(frozen=True, kw_only=True)
class HarborOptions:
    """Options of the command."""

    suite: Suite = opt.suite()

    out: Path
    """Write the dataset to this folder."""

    wheel: Path | None = None
    """Let the verifier install this wheel of passnet; `pip wheel --no-deps .` makes one."""

    requirement: str | None = opt.field(None, metavar="NAME")
    """Let pip install this as passnet instead, where an index has it."""

    solutions: Path | None = None
    """Ship this pass folder as the solution of all tasks, or this folder with one for each task."""

    held_out: Suite | None = opt.shared("held_out")

    settings: RunSettings = opt.fields_of(
        lambda: RunSettings(JudgeSettings(rules="strict")), "judge.rules", "num_threads"
    )

    base_image: str = opt.field("python:3.12-bookworm", metavar="IMAGE")
    """Start tasks and verifier from this container image, which needs Python and g++."""


@opt.command("harbor")
def export_command(options: HarborOptions) -> None:
    """Write the tasks of a suite as a Harbor dataset, judged by a separate verifier."""
    out, held_out = options.out, options.held_out
    content_hash = held_out.content_hash if held_out else None
    plan = HarborPlan(
        replace(options.settings, held_out=content_hash),
        base_image=options.base_image,
        wheel=options.wheel,
        passnet=options.requirement,
    )
    export = export_harbor(options.suite, out, plan, held_out, options.solutions)
    say(
        f"written to {out}: {export.num_tasks} tasks, {export.num_held_out} with held-out shapes, "
        f"{export.num_solutions} with a solution"
    )


if __name__ == "__main__":
    try:
        export_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
