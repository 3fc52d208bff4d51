"""The figure of scores by tolerance: a line a candidate, with a band for its interval."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from passnet.bench.scores import CandidateScore
from passnet.pages.figures.styles import line_style, new_figure, plain_log_axis

COINCIDING = 0.01
"""Largest distance of coinciding lines at any level, in logarithms."""

LABEL_GAP = 0.045
"""Least distance of labels at the ends of lines, as a share of the height."""


def draw_es(scores: Sequence[CandidateScore], path: Path) -> None:
    """Draw ES_t over the tolerance level.

    Coinciding lines share the label at their end, and the thinner ones lie on the thicker ones.
    """
    groups = _coinciding(scores)
    widths = {
        index: 1.6 + 2.4 * (len(group) - 1 - rank)
        for group in groups
        for rank, index in enumerate(group)
    }
    levels = list(scores[0].suite.es)
    with new_figure(path, (8, 4.6)) as (_, axes):
        for index, score in enumerate(scores):
            _draw_line(axes, score, index, widths[index])
        axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        plain_log_axis(axes.yaxis, axes.set_yscale)
        axes.set(
            xticks=levels,
            xlim=(levels[0] - 0.3, levels[-1] + 0.3),
            axisbelow=True,
            xlabel="tolerance level t: strict to the left, loose to the right; correct is t = -5",
            ylabel="ES_t (1 is eager PyTorch)",
            title="Error-aware Speedup Score by tolerance, with 95 % intervals over tasks",
        )
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        _label_ends(axes, scores, groups)


def _draw_line(axes: Any, score: CandidateScore, index: int, width: float) -> None:
    es, style = score.suite.es, line_style(index)
    low, high = ([getattr(score.es_intervals[t], end) for t in es] for end in ("low", "high"))
    axes.fill_between(list(es), low, high, color=style.colour, alpha=0.13, linewidth=0)
    axes.plot(
        list(es),
        list(es.values()),
        color=style.colour,
        linestyle=style.dashes,
        marker=style.marker,
        markersize=3 + width,
        linewidth=width,
        alpha=0.9,
        markevery=(index % 3, 3) if len(es) > 6 else None,
        zorder=3 + 1 / width,
    )


def _coinciding(scores: Sequence[CandidateScore]) -> list[list[int]]:
    """Return the numbers of the candidates, grouped by coinciding lines."""
    groups: list[list[int]] = []
    for index, score in enumerate(scores):
        es = score.suite.es
        for group in groups:
            first = scores[group[0]].suite.es
            if max(abs(float(np.log(first[t] / es[t]))) for t in first) < COINCIDING:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _label_ends(axes: Any, scores: Sequence[CandidateScore], groups: list[list[int]]) -> None:
    """Draw a label to the right of each line's end, and move labels apart that would overlap."""
    low, high = np.log(axes.get_ylim())
    ends = []
    for group in groups:
        last = list(scores[group[0]].suite.es.values())[-1]
        ends.append(((float(np.log(last)) - low) / (high - low), group))
    rows = [(height, index) for height, group in sorted(ends) for index in group]
    label_heights = _apart([height for height, _ in rows])
    for (end, index), height in zip(rows, label_heights, strict=True):
        score, style = scores[index], line_style(index)
        line = {"color": style.colour, "linewidth": 0.8, "linestyle": style.dashes}
        axes.annotate(
            f"{score.candidate}  AS {score.suite.score:.3f}",
            xy=(1.0, end),
            xytext=(1.06, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=style.colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 1, **line},
        )


def _apart(heights: Sequence[float]) -> list[float]:
    """Return rising heights, moved at least `LABEL_GAP` apart, and none above the axis."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LABEL_GAP) if moved else height)
    excess = max(0.0, moved[-1] - 1.0) if moved else 0.0
    moved = [height - excess for height in moved]
    for index in range(len(moved) - 2, -1, -1):
        moved[index] = min(moved[index], moved[index + 1] - LABEL_GAP)
    return moved
