"""Write a release for Hugging Face: `python -m recipes.publication --help`."""

import sys
from dataclasses import dataclass
from pathlib import Path

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.core.terminal.progress import late_progress
from passnet.data.dataset.splits import read_split
from passnet.errors import InputError, PassnetError
from recipes.publication import PublicationPlan, publish


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """Options of the command."""

    out: Path
    """Write the release to this folder."""

    graphs: tuple[Path, ...] = ()
    """Publish this set of captured graphs."""

    dataset: Path | None = None
    """Publish the dataset of subgraphs in this folder."""

    split: Path | None = None
    """Take splits from this folder of `passnet dataset split`, made of that dataset."""

    suites: tuple[str, ...] = opt.field((), option="suite", metavar="SUITE")
    """Publish this suite, a shipped one by name or a file."""

    trajectories: tuple[Path, ...] = ()
    """Publish this file of `passnet agent export`."""

    name: str = "passnet"
    """Give the release this name."""

    release: str = "1.0.0"
    """Give the release this version."""

    license: str = "mit"
    """Name this licence on the card."""

    url: str | None = None
    """Name this address of the release on the card."""

    json: bool = opt.shared("json")


@opt.command("publish")
def publish_command(options: PublishOptions) -> None:
    """Write graphs, subgraphs, suites and trajectories as one repository for Hugging Face.

    Each is a configuration of its own. The card has a datasheet, the licences of the sources, and
    how to cite.
    """
    if options.split is not None and options.dataset is None:
        raise InputError("--split is of a dataset; give --dataset too")
    plan = PublicationPlan(
        options.name,
        options.release,
        options.graphs,
        options.dataset,
        read_split(options.split)[1] if options.split is not None else {},
        options.suites,
        options.trajectories,
        options.license,
        options.url,
    )
    with late_progress() as start:
        facts = publish(plan, options.out, start)
    lines = [
        f"{config.name}: {config.num_rows} rows, {', '.join(config.splits)}"
        for config in facts.configs
    ]
    configs = {config.name: dict(config.splits) for config in facts.configs}
    print_result(options.json, {"configs": configs}, [*lines, f"in {options.out}"])


if __name__ == "__main__":
    try:
        publish_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
