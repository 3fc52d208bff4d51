"""Score runs under other rules of the metric: `python -m recipes.sensitivity --help`."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_tables
from passnet.errors import InputError, PassnetError
from recipes.sensitivity import sensitivity
from recipes.sensitivity.tables import draw_sensitivity, sensitivity_table, write_sensitivity
from recipes.sensitivity.trials import candidates_of


@click.command("sensitivity")
@opt.paths
@opt.option("--candidate", "Only this candidate (repeatable); all by default.", "names",
            multiple=True, metavar="NAME")  # fmt: skip
@opt.number("--seed", "Seed of the resampling.", default=0)
@opt.path("--svg", "A file to draw the figure in.")
@opt.path("--study", "A folder to write it to as a study, for `passnet report`.")
@opt.json
def sensitivity_command(paths: tuple[Path, ...], names: tuple[str, ...], seed: int,
                        svg: Path | None, study: Path | None, as_json: bool) -> None:  # fmt: skip
    """Score the trials in PATHS, run folders or JSON-lines files, under other rules of the metric.

    Varied, each alone, are b, p, the weights of the levels, the tolerances, what a correct output
    is near to (eager torch, or float64), whether tasks or trials are averaged, and whether strides
    are demanded. Candidates of several runs are compared on the tasks that all have.
    """
    candidates = candidates_of(paths)
    unknown = [name for name in names if name not in candidates]
    if unknown:
        raise InputError(f"no candidate {unknown[0]!r}; there are {', '.join(candidates)}")
    chosen = {name: tasks for name, tasks in candidates.items() if name in names or not names}
    outcomes = sensitivity(chosen, seed=seed)
    if as_json:
        print_json([asdict(outcome) for outcome in outcomes])
    else:
        print_tables([sensitivity_table(outcomes)])
    if svg is not None:
        draw_sensitivity(outcomes, svg)
        click.echo(f"written: {svg}", err=as_json)
    if study is not None:
        write_sensitivity(outcomes, study)
        click.echo(f"written: {study}", err=as_json)


if __name__ == "__main__":
    try:
        sensitivity_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
