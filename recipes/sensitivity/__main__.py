"""Score runs under other rules of the metric: `python -m recipes.sensitivity --help`."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_json, print_tables, say
from passnet.errors import InputError, PassnetError, no_such
from recipes.sensitivity import sensitivity
from recipes.sensitivity.tables import draw_sensitivity, sensitivity_table, write_sensitivity
from recipes.sensitivity.trials import candidates_of


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """Options of the command."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    candidates: tuple[str, ...] = opt.field((), option="candidate", metavar="NAME")
    """Score only this candidate; all by default."""

    seed: int = opt.shared("seed")

    figure: Path | None = opt.shared("figure")

    study: Path | None = None
    """Write the result to this folder as a study, for `passnet report`."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("sensitivity")
def sensitivity_command(options: SensitivityOptions) -> None:
    """Score the trials in PATHS, run folders or JSON-lines files, under other rules of the metric.

    Varied, each alone, are b, p, the weights of the levels, the tolerances, the reference of
    correctness (eager torch, or float64), the mean over tasks or over trials, and whether strides
    are demanded. Candidates of several runs are compared on the tasks that all have.
    """
    candidates, names = candidates_of(options.paths), options.candidates
    unknown = [name for name in names if name not in candidates]
    if unknown:
        raise InputError(no_such("candidate", unknown[0], candidates))
    selected = {name: tasks for name, tasks in candidates.items() if name in names or not names}
    outcomes = sensitivity(selected, seed=options.seed)
    if options.json:
        print_json([asdict(outcome) for outcome in outcomes])
    else:
        print_tables([sensitivity_table(outcomes)], options.wide)
    if options.figure is not None:
        draw_sensitivity(outcomes, options.figure)
        say(f"written: {options.figure}", err=options.json)
    if options.study is not None:
        write_sensitivity(outcomes, options.study)
        say(f"written: {options.study}", err=options.json)


if __name__ == "__main__":
    try:
        sensitivity_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
