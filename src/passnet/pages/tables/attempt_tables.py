"""Tables and the figure of attempts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from passnet.agent.trajectories.selection import TrainingInfo
from passnet.agent.trajectories.stats import FAILED_SCORE, AuthorStats, doublings
from passnet.pages.figures.styles import new_figure
from passnet.pages.tables.cells import NOTHING, counts_in_words, number, percent
from passnet.pages.tables.tables import Table

StatsColumns = Mapping[str, Callable[[AuthorStats], str]]
"""The cell of each column of a table of authors, by its head."""

SCORES: StatsColumns = {
    "attempts": lambda author: str(author.num_attempts),
    "tasks": lambda author: str(author.num_tasks),
    "errors": lambda author: str(author.num_attempts - author.num_scored),
    "submitted": lambda author: str(author.num_submitted),
    "not timed": lambda author: str(author.num_untimed),
    "solved %": lambda author: percent(author.solved_ratio),
    "tasks solved %": lambda author: percent(author.tasks_solved_ratio),
    "AS mean": lambda author: number(author.mean_score),
    "AS": lambda author: number(author.geomean_score),
    "AS final": lambda author: number(author.geomean_final_score),
}

LEAST_SCORES = ("AS mean", "not timed", "tasks", "errors", "submitted", "tasks solved %")
"""The columns of `SCORES` that are worth least."""

CONDUCT: StatsColumns = {
    "flipped %": lambda author: percent(author.flipped_ratio),
    "flips": lambda author: f"{author.flips_per_attempt:.2f}",
    "exploits %": lambda author: percent(author.exploit_attempts_ratio),
    "of evaluations %": lambda author: percent(author.exploit_evaluations_ratio),
    "bad actions": lambda author: str(author.num_bad_actions),
    "exploits": lambda author: counts_in_words(author.exploits),
    "endings": lambda author: counts_in_words(author.endings),
}

EFFORT: StatsColumns = {
    "turns": lambda author: f"{author.num_turns / author.num_attempts:.1f}",
    "input tokens": lambda author: f"{author.input_tokens / author.num_attempts:.0f}",
    "output tokens": lambda author: f"{author.output_tokens / author.num_attempts:.0f}",
    "seconds": lambda author: f"{author.seconds / author.num_attempts:.1f}",
    "cost in all": lambda author: number(author.cost),
}


def stats_tables(stats: Sequence[AuthorStats]) -> list[Table]:
    """Return the tables of authors: scores, learning curves, conduct, effort, and our own time."""
    scores_note = (
        "solved: the final score is above 1. AS: geometric mean of the best states as evaluated; "
        "final: the same states measured anew. not timed: submissions for which the machine was "
        "too busy at the end. These and errors are in no score. An attempt that submitted nothing "
        f"counts as an AS of {FAILED_SCORE:g}."
    )
    conduct_note = (
        "flipped: attempts that passed, failed, and passed again; flips: how often an attempt did. "
        "exploits: attempts with one, by name."
    )
    effort_note = "Means over attempts; the cost is the sum of those that are known."
    return [
        _author_table("Attempts", stats, SCORES, scores_note, LEAST_SCORES),
        curve_table(stats),
        _author_table("Conduct", stats, CONDUCT, conduct_note),
        _author_table("Effort of an attempt", stats, EFFORT, effort_note),
        *overhead_tables(stats),
    ]


def _author_table(
    title: str,
    stats: Sequence[AuthorStats],
    columns: StatsColumns,
    note: str,
    least: tuple[str, ...] = (),
) -> Table:
    rows = [(author.name, *(cell(author) for cell in columns.values())) for author in stats]
    return Table(title, ("author", *columns), [*rows], note, least)


def curve_table(stats: Sequence[AuthorStats]) -> Table:
    """Return the best AS of each author after 1, 2, 4, ... evaluations."""
    numbers = doublings(max((len(author.curve) for author in stats), default=0))
    rows = [(author.name, *(_step(author, number) for number in numbers)) for author in stats]
    note = (
        "Geometric mean over attempts; who has ended keeps the last. not timed: attempts that are "
        "not in the mean, as the machine was too busy to time any of their evaluations so far."
    )
    heads = ("author", *map(str, numbers))
    return Table("Best AS after so many evaluations", heads, [*rows], note)


def _step(author: AuthorStats, num_evaluations: int) -> str:
    """Return a cell of the table of curves: the mean, and the attempts that are not in it."""
    if not author.curve:
        return NOTHING
    step = min(num_evaluations, len(author.curve)) - 1
    num_untimed = author.curve_untimed[step]
    return number(author.curve[step]) + (f" ({num_untimed} not timed)" if num_untimed else "")


def overhead_tables(stats: Sequence[AuthorStats]) -> list[Table]:
    """Return our own time in a turn and in each tool, a table for each author that has it."""
    heads = ("tool", "calls", "median s", "95th percentile s")
    note = "Without loading, compiling, running and timing passes and references."
    tables = []
    for author in stats:
        rows = [
            (part.tool, str(part.num_calls), f"{part.median_s:.3f}", f"{part.p95_s:.3f}")
            for part in author.own_s
        ]
        if rows:
            tables.append(Table(f"Our own time, {author.name}", heads, [*rows], note))
    return tables


def training_table(info: TrainingInfo) -> Table:
    """Return the outcomes of the attempts that training data was made from."""
    rows: list[tuple[str, ...]] = [("read", str(info.num_read))]
    rows += [(reason, str(count)) for reason, count in info.dropped.items()]
    rows.append((f"kept, of {info.num_tasks} op sequences", str(info.num_rows)))
    return Table("Training data", ("attempts", "number"), rows)


def draw_curves(stats: Sequence[AuthorStats], path: Path) -> None:
    """Draw the best AS over the number of evaluations, a line for each author."""
    from matplotlib.ticker import MaxNLocator

    with new_figure(path, (7, 4)) as (_, axes):
        for author in stats:
            label = f"{author.name} ({author.num_scored} attempts)"
            points = [(n, score) for n, score in enumerate(author.curve, 1) if score is not None]
            numbers, scores = zip(*points, strict=True) if points else ((), ())
            axes.plot(numbers, scores, marker="o", markersize=3, label=label)
        axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(yscale="log", xlabel="evaluations", ylabel="best AS so far")
        axes.set_title("Learning curves, geometric mean over attempts")
        axes.legend(fontsize=8)
