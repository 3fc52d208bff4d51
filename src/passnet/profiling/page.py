"""A study of profiles as a page of Markdown with its figure."""

from collections.abc import Sequence
from pathlib import Path

from passnet.bench.environment import Environment
from passnet.errors import naming
from passnet.profiling.record import PART_NAMES
from passnet.profiling.study import PUBLISHED, GroupShare, Study
from passnet.profiling.tables import study_tables
from passnet.report.tables import markdown

PART_COLOURS = {
    "guards": "#0072b2",
    "runtime": "#56b4e9",
    "wrapper": "#009e73",
    "copies": "#f0e442",
    "generated": "#e69f00",
    "library": "#d55e00",
}
"""Of the palette of Okabe and Ito, which colour-blind people tell apart."""

FIGURE_GROUPS = ("time", "ops", "domain", "dtype", "library")


def study_page(found: Study, environments: Sequence[Environment], figure: str) -> str:
    """The text of the page; `figure` is the name of its figure's file."""
    places = [
        f"{each.cpu}, {each.num_cpus} processors, torch {each.torch}, {each.compiler}"
        for each in environments
    ]
    where = "; ".join(dict.fromkeys(places)) or "no known machine"
    head = f"# Where torch.compile loses\n\nMeasured on {where}.\n"
    return f"{head}\n![shares of slower calls, and their parts]({figure})\n\n" + markdown(
        study_tables(found)
    )


def draw_study(found: Study, path: Path) -> None:
    """The share of slower calls by group beside the published one, and where the time of compiled
    calls goes.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = [
        (f"{by}: {group.name}", group)
        for by in FIGURE_GROUPS
        for group in found.groups.get(by, ())
        if group.num_items >= max(3, 0.01 * found.num_measured)
    ]
    height = 1.6 + 0.24 * len(groups)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, height), sharey=True, layout="constrained"
    )
    _draw_shares(left, groups, found)
    _draw_parts(right, [group for _, group in groups])
    figure.suptitle(f"torch.compile against eager torch, {found.num_measured} items")
    with naming(path):
        figure.savefig(path)
    plt.close(figure)


def _draw_shares(axes, groups: Sequence[tuple[str, GroupShare]], found: Study) -> None:  # noqa: ANN001
    names = [f"{name} ({group.num_items})" for name, group in groups]
    rows = range(len(groups))
    axes.barh(rows, [100 * group.slower for _, group in groups], color="#bbbbbb", label="slower")
    axes.barh(
        rows,
        [100 * group.surely_slower for _, group in groups],
        color="#555555",
        height=0.4,
        label="surely, by more than 5 %",
    )
    axes.axvline(
        100 * PUBLISHED["slower"], color="#d55e00", linestyle="--", label="published: 43 %"
    )
    if found.slower.value is not None:
        axes.axvline(100 * found.slower.value, color="#0072b2", label="all items here")
    axes.set_yticks(list(rows), names, fontsize=8)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of items that are slower from end to end, %")
    axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)


def _draw_parts(axes, groups: Sequence[GroupShare]) -> None:  # noqa: ANN001
    left = [0.0] * len(groups)
    totals = [sum(group.parts.values()) or 1.0 for group in groups]
    for name in PART_NAMES:
        widths = [
            100 * group.parts[name] / total for group, total in zip(groups, totals, strict=True)
        ]
        axes.barh(
            range(len(groups)), widths, left=left, color=PART_COLOURS[name], label=name,
            edgecolor="white", linewidth=0.5,
        )  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_xlim(0, 100)
    axes.set_xlabel("parts of a compiled call, mean shares, %")
    axes.legend(fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
