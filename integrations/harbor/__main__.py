"""Write the tasks of a suite as a Harbor dataset: `python -m integrations.harbor --help`."""

import sys
from pathlib import Path

import click

from integrations.harbor.export import HarborPlan, export_harbor
from passnet.cli import options as opt
from passnet.errors import PassnetError
from passnet.judge.inspection.rules import RulesName
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import Suite


@click.command("harbor")
@opt.suite
@opt.out("The folder of the dataset")
@opt.path("--wheel", "The wheel of passnet that the verifier installs; `pip wheel --no-deps .` "
          "makes one.")  # fmt: skip
@opt.option("--requirement", "What pip installs as passnet instead, where an index has it.",
            metavar="NAME")  # fmt: skip
@opt.path("--solutions", "A pass folder for all tasks, or a folder with one for each task.")
@opt.held_out
@opt.rules("strict")
@opt.threads
@opt.option("--base-image",
            "The container image that tasks and verifier start from; it needs Python and g++.",
            default="python:3.12-bookworm", metavar="IMAGE")  # fmt: skip
def export_command(suite: Suite, out: Path, wheel: Path | None, requirement: str | None,
                 solutions: Path | None, held_out: Suite | None, rules: RulesName, threads: int,
                 base_image: str) -> None:  # fmt: skip
    """Write the tasks of a suite as a Harbor dataset, judged by a separate verifier."""
    settings = RunSettings(
        JudgeSettings(rules=rules), threads, held_out=held_out.content_hash if held_out else None
    )
    plan = HarborPlan(settings, base_image=base_image, wheel=wheel, passnet=requirement)
    export = export_harbor(suite, out, plan, held_out, solutions)
    click.echo(
        f"written to {out}: {export.num_tasks} tasks, {export.num_held_out} with held-out shapes, "
        f"{export.num_solutions} with a solution"
    )


if __name__ == "__main__":
    try:
        export_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
