"""Table and figure of the dependence of AS, and of the order of candidates, on the metric."""

from collections.abc import Sequence
from pathlib import Path

from passnet.core.records.serialise import make_folder
from passnet.errors import naming
from passnet.judge.score.interval import Interval
from passnet.pages.figures.study_page import StudyFigure, StudyPage, write_study_page
from passnet.pages.figures.styles import line_style, plain_log_axis
from passnet.pages.tables.tables import Table
from recipes.sensitivity import RuleOutcome

ROW_INCHES = 0.3
FIGURE = "sensitivity.svg"


def write_sensitivity(outcomes: Sequence[RuleOutcome], folder: Path) -> None:
    """Write table and figure as a study that `passnet report` shows.

    Raises:
        InputError: the folder cannot be written to.
    """
    make_folder(folder)
    draw_sensitivity(outcomes, folder / FIGURE)
    others = [each for each in outcomes[1:] if each.tau is not None]
    finding = ""
    if others:
        least = min(others, key=lambda each: each.tau or 0.0)
        finding = (
            f"The order of {len(least.scores)} candidates is the published one under all "
            f"{len(others)} other rules."
            if least.tau == 1
            else f"Of {len(others)} other rules the order of {len(least.scores)} candidates agrees "
            f"least with the published one, tau {least.tau:+.2f}, under "
            f"{least.rule.group}: {least.rule.name}."
        )
    page = StudyPage(
        title="What the score depends on",
        finding=finding,
        tables=(sensitivity_table(outcomes),),
        figures=(StudyFigure(FIGURE, "AS under each rule, with its 95 % interval over tasks."),),
    )
    write_study_page(folder, page)


def sensitivity_table(outcomes: Sequence[RuleOutcome]) -> Table:
    """Return one row a rule: the AS of every candidate with its interval and place, and the
    agreement of their order with the published one.
    """
    names = list(outcomes[0].scores)
    table = Table(
        "AS by the rules of the metric",
        ("varied", "rule", *names, "tau", "its interval", "left out"),
        note="AS with its 95 % interval over tasks, and the place of the candidate. tau: Kendall's "
        "tau-b of the order of candidates with the published one. left out: trials that do not "
        "count.",
    )
    for outcome in outcomes:
        cells = [
            f"{score.value:.3f} ({_bounds(score.interval)}) {score.rank}."
            for score in outcome.scores.values()
        ]
        tau = "–" if outcome.tau is None else f"{outcome.tau:+.2f}"
        interval = "–" if outcome.tau_interval is None else _bounds(outcome.tau_interval, 2)
        left_out = str(outcome.num_left_out or "")
        table.rows.append((outcome.rule.group, outcome.rule.name, *cells, tau, interval, left_out))
    return table


def _bounds(interval: Interval, digits: int = 3) -> str:
    return f"{interval.low:.{digits}f} – {interval.high:.{digits}f}"


def draw_sensitivity(outcomes: Sequence[RuleOutcome], path: Path) -> None:
    """Draw the AS of every candidate under each rule, with its interval, a row a rule."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(outcomes[0].scores)
    height = 1.4 + ROW_INCHES * len(outcomes) * max(1.0, len(names) / 4)
    figure, axes = plt.subplots(figsize=(8, height), layout="constrained")
    for number, name in enumerate(names):
        style = line_style(number)
        offset = (number - (len(names) - 1) / 2) * 0.7 / max(1, len(names))
        scores = [outcome.scores[name] for outcome in outcomes]
        axes.errorbar(
            [score.value for score in scores],
            [row + offset for row in range(len(outcomes))],
            xerr=[
                [score.value - score.interval.low for score in scores],
                [score.interval.high - score.value for score in scores],
            ],
            fmt=style.marker, markersize=5, color=style.colour, elinewidth=1, label=name,
        )  # fmt: skip
        axes.axvline(scores[0].value, color=style.colour, linewidth=0.6, alpha=0.5)
    for row, outcome in enumerate(outcomes):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#f3f3f3", zorder=-5)
        if outcome.tau is not None:
            text = f"τ {outcome.tau:+.2f}"
            axes.annotate(text, (1.01, row), xycoords=("axes fraction", "data"), fontsize=8,
                          va="center", annotation_clip=False)  # fmt: skip
    labels = [_label(outcome) for outcome in outcomes]
    axes.set_yticks(range(len(outcomes)), labels, fontsize=8)
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    plain_log_axis(axes.xaxis, axes.set_xscale)
    axes.set_xlabel("AS under each rule, with its 95 % interval over tasks")
    axes.set_title("The score by the rules of the metric", fontsize=11)
    figure.legend(loc="outside lower center", ncols=min(4, len(names)), fontsize=8)
    with naming(path):
        figure.savefig(path)
    plt.close(figure)


def _label(outcome: RuleOutcome) -> str:
    rule = outcome.rule
    return rule.name if rule.group in ("published", "b", "p") else f"{rule.group}: {rule.name}"
