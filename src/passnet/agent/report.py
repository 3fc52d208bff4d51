"""Tables and the figure of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from passnet.agent.stats import AuthorStats, doublings
from passnet.agent.training_data import TrainingInfo
from passnet.report.tables import Table


def stats_tables(stats: Sequence[AuthorStats]) -> list[Table]:
    """The tables of authors: scores, learning curves, conduct, effort, and our own time."""
    return [
        score_table(stats),
        curve_table(stats),
        conduct_table(stats),
        effort_table(stats),
        *overhead_tables(stats),
    ]


def score_table(stats: Sequence[AuthorStats]) -> Table:
    """One row an author: how many attempts, what they solved, and their scores."""
    table = Table(
        "Attempts",
        ("author", "attempts", "tasks", "errors", "submitted", "solved %", "tasks solved %",
         "AS mean", "AS", "AS final"),
        note="solved: the final score is above 1. AS: geometric mean of the best states as "
        "evaluated; final: the same states measured anew. Errors are in no score.",
    )  # fmt: skip
    for item in stats:
        table.rows.append(
            (
                item.name,
                str(item.num_attempts),
                str(item.num_tasks),
                str(item.num_attempts - item.num_scored),
                str(item.num_submitted),
                _percent(item.solved_ratio),
                _percent(item.tasks_solved_ratio),
                _number(item.mean_score),
                _number(item.geomean_score),
                _number(item.geomean_final_score),
            )
        )
    return table


def curve_table(stats: Sequence[AuthorStats]) -> Table:
    """One row an author: the best AS after 1, 2, 4, ... evaluations."""
    numbers = doublings(max((len(item.curve) for item in stats), default=0))
    table = Table(
        "Best AS after so many evaluations",
        ("author", *map(str, numbers)),
        note="Geometric mean over attempts; who has ended keeps the last.",
    )
    for item in stats:
        values = [item.curve[min(number, len(item.curve)) - 1] for number in numbers if item.curve]
        table.rows.append((item.name, *map(_number, values or [None] * len(numbers))))
    return table


def conduct_table(stats: Sequence[AuthorStats]) -> Table:
    """One row an author: how steady and how honest."""
    table = Table(
        "Conduct",
        ("author", "flipped %", "flips", "exploits %", "of evaluations %", "bad actions",
         "exploits", "endings"),
        note="flipped: attempts that passed, failed, and passed again; flips: how often an "
        "attempt did. exploits: attempts with one, by name.",
    )  # fmt: skip
    for item in stats:
        table.rows.append(
            (
                item.name,
                _percent(item.flipped_ratio),
                f"{item.flips_per_attempt:.2f}",
                _percent(item.exploit_attempts_ratio),
                _percent(item.exploit_evaluations_ratio),
                str(item.num_bad_actions),
                _counts(item.exploits),
                _counts(item.endings),
            )
        )
    return table


def effort_table(stats: Sequence[AuthorStats]) -> Table:
    """One row an author: turns, tokens, time and cost of an attempt."""
    table = Table(
        "Effort of an attempt",
        ("author", "turns", "input tokens", "output tokens", "seconds", "cost in all"),
        note="Means over attempts; the cost is the sum of those that are known.",
    )
    for item in stats:
        number = item.num_attempts
        table.rows.append(
            (
                item.name,
                f"{item.num_turns / number:.1f}",
                f"{item.input_tokens / number:.0f}",
                f"{item.output_tokens / number:.0f}",
                f"{item.seconds / number:.1f}",
                _number(item.cost),
            )
        )
    return table


def overhead_tables(stats: Sequence[AuthorStats]) -> list[Table]:
    """One table an author of whom it is known: our own time in a turn and in each tool."""
    tables = []
    for item in stats:
        rows: list[tuple[str, ...]] = [
            (part.tool, str(part.num_calls), f"{part.median_s:.3f}", f"{part.p95_s:.3f}")
            for part in item.own_s
        ]
        if rows:
            heads = ("tool", "calls", "median s", "95th percentile s")
            note = "Without loading, compiling, running and timing passes and references."
            tables.append(Table(f"Our own time, {item.name}", heads, rows, note))
    return tables


def training_table(info: TrainingInfo) -> Table:
    """What became of the attempts that training data was made of."""
    table = Table("Training data", ("attempts", "number"))
    table.rows.append(("read", str(info.num_read)))
    table.rows.extend((reason, str(count)) for reason, count in info.dropped.items())
    table.rows.append((f"kept, of {info.num_tasks} op sequences", str(info.num_rows)))
    return table


def draw_curves(stats: Sequence[AuthorStats], path: Path) -> None:
    """The best AS over the number of evaluations, a line an author, as an SVG or PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for item in stats:
        label = f"{item.name} ({item.num_scored} attempts)"
        numbers = range(1, len(item.curve) + 1)
        axes.plot(numbers, item.curve, marker="o", markersize=3, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("evaluations")
    axes.set_ylabel("best AS so far")
    axes.set_title("Learning curves, geometric mean over attempts")
    axes.legend(fontsize=8)
    figure.savefig(path)
    plt.close(figure)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "–"
