"""Write a release for Hugging Face: `python -m recipes.publication --help`."""

import sys
from pathlib import Path

import click

from passnet.cli import options as opt
from passnet.cli.output import print_result
from passnet.core.terminal.progress import late_progress
from passnet.data.dataset.splits import read_split
from passnet.errors import InputError, PassnetError
from recipes.publication import PublicationPlan, publish


@click.command("publish")
@opt.out("The folder of the release")
@opt.path("--graphs", "A set of captured graphs (repeatable).", multiple=True)
@opt.path("--subgraphs", "A dataset of subgraphs.")
@opt.path("--split", "A folder of `passnet dataset split` of that dataset.")
@opt.option("--suite", "A suite that ships with passnet, or its file (repeatable).", "suites",
            multiple=True, metavar="SUITE")  # fmt: skip
@opt.path("--trajectories", "A file of `passnet agent export` (repeatable).", multiple=True)
@opt.option("--name", "The name of the release.", default="passnet")
@opt.option("--version", "The version of the release.", default="1.0.0")
@opt.option("--license", "The licence that the card names.", "license_name", default="mit")
@opt.option("--url", "Where the release is kept.")
@opt.json
def publish_command(out: Path, graphs: tuple[Path, ...], subgraphs: Path | None, split: Path | None,
                    suites: tuple[str, ...], trajectories: tuple[Path, ...], name: str,
                    version: str, license_name: str, url: str | None,
                    as_json: bool) -> None:  # fmt: skip
    """Write graphs, subgraphs, suites and trajectories as one repository for Hugging Face.

    Each is a configuration of its own. The card has a datasheet, the licences of the sources, and
    how to cite.
    """
    if split is not None and subgraphs is None:
        raise InputError("--split is of a dataset; give --subgraphs too")
    sides = read_split(split)[1] if split is not None else {}
    plan = PublicationPlan(
        name, version, graphs, subgraphs, sides, suites, trajectories, license_name, url
    )
    with late_progress() as start:
        facts = publish(plan, out, start)
    lines = [
        f"{config.name}: {config.num_rows} rows, {', '.join(config.splits)}"
        for config in facts.configs
    ]
    configs = {config.name: dict(config.splits) for config in facts.configs}
    print_result(as_json, {"configs": configs}, [*lines, f"in {out}"])


if __name__ == "__main__":
    try:
        publish_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
