"""The study of profiles: a page of Markdown with its figure, and a page of the site."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from passnet.bench.environment import Environment
from passnet.bench.profiling.record import PART_NAMES
from passnet.bench.profiling.run import profile_folder, read_profiles
from passnet.bench.profiling.study import PUBLISHED, GroupShare, ProfileStudy, study
from passnet.pages.figures.study_page import Study, StudyFigure, StudyPage
from passnet.pages.figures.styles import new_figure
from passnet.pages.tables.cells import percent
from passnet.pages.tables.profile_tables import study_tables
from passnet.pages.tables.tables import markdown

PART_COLOURS = {
    "guards": "#0072b2",
    "runtime": "#56b4e9",
    "wrapper": "#009e73",
    "copies": "#f0e442",
    "generated": "#e69f00",
    "library": "#d55e00",
}
"""Colours of the palette of Okabe and Ito, which colour-blind people tell apart."""

FIGURE_GROUPS = ("time", "ops", "domain", "dtype", "library")
FIGURE = "shares.svg"


def profile_study(folder: Path) -> Study:
    """Return the study of the profiles in a folder, as `passnet report` shows it.

    Raises:
        InputError: the folder holds no profiles, or none was measured.
    """
    records = read_profiles([folder])
    results = study(records)
    kinds = " and ".join(sorted({f"{record.kind}s" for record in records}))
    parts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in results.parts.items())
    left_out = ", ".join(f"{cause} {count}" for cause, count in results.left_out.items())
    environment = profile_folder(folder).read_info().environment
    name = folder.resolve().name
    page = StudyPage(
        title=f"Where torch.compile loses: {name}",
        finding=f"{percent(results.slower.value)} % of {results.num_measured:,} {kinds} are slower "
        "under torch.compile than in eager PyTorch from end to end (published: "
        f"{100 * PUBLISHED['slower']:.0f} %), and {percent(results.slower_direct.value)} % when "
        "their compiled graph is called directly.",
        paragraphs=(
            f"Mean shares of a compiled call: {parts}.",
            f"Left out, of {results.num_items:,}: {left_out or 'none'}.",
        ),
        tables=tuple(study_tables(results)),
        figures=(StudyFigure(FIGURE, "Share of slower calls by group, and parts of their time."),),
        measured_on=_machine(environment) if environment is not None else "",
    )
    return Study(name, page, {FIGURE: partial(draw_study, results)})


def _machine(environment: Environment) -> str:
    return (
        f"{environment.cpu}, {environment.num_cpus} processors, torch {environment.torch}, "
        f"{environment.compiler}"
    )


def study_page(results: ProfileStudy, environments: Sequence[Environment], figure: str) -> str:
    """Return the page as Markdown; `figure` is the name of its figure's file."""
    machines = "; ".join(dict.fromkeys(map(_machine, environments))) or "no known machine"
    head = f"# Where torch.compile loses\n\nMeasured on {machines}.\n"
    picture = f"![shares of slower calls, and their parts]({figure})"
    return f"{head}\n{picture}\n\n{markdown(study_tables(results))}"


def draw_study(results: ProfileStudy, path: Path) -> None:
    """Draw the share of slower calls by group, and the parts of the time of compiled calls."""
    groups = [
        (f"{by}: {group.name}", group)
        for by in FIGURE_GROUPS
        for group in results.groups.get(by, ())
        if group.num_items >= max(3, 0.01 * results.num_measured)
    ]
    height = 1.6 + 0.24 * len(groups)
    with new_figure(path, (11, height), ncols=2, sharey=True) as (figure, (left, right)):
        _draw_shares(left, groups, results)
        _draw_parts(right, [group for _, group in groups])
        figure.suptitle(f"torch.compile against eager PyTorch, {results.num_measured} items")


def _draw_shares(
    axes: Any, groups: Sequence[tuple[str, GroupShare]], results: ProfileStudy
) -> None:
    names = [f"{name} ({group.num_items})" for name, group in groups]
    rows = range(len(groups))
    slower = [100 * group.slower for _, group in groups]
    surely = [100 * group.surely_slower for _, group in groups]
    axes.barh(rows, slower, color="#bbbbbb", label="slower")
    axes.barh(rows, surely, color="#555555", height=0.4, label="surely, by more than 5 %")
    published = 100 * PUBLISHED["slower"]
    axes.axvline(published, color="#d55e00", linestyle="--", label="published: 43 %")
    if results.slower.value is not None:
        axes.axvline(100 * results.slower.value, color="#0072b2", label="all items here")
    axes.set_yticks(list(rows), names, fontsize=8)
    axes.set(ylim=(len(groups) - 0.4, -0.6), xlim=(0, 100))
    axes.set_xlabel("share of items that are slower from end to end, %")
    axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)


def _draw_parts(axes: Any, groups: Sequence[GroupShare]) -> None:
    rows = range(len(groups))
    starts = [0.0] * len(groups)
    totals = [sum(group.parts.values()) or 1.0 for group in groups]
    for name in PART_NAMES:
        widths = [
            100 * group.parts[name] / total for group, total in zip(groups, totals, strict=True)
        ]
        fill = {"color": PART_COLOURS[name], "edgecolor": "white", "linewidth": 0.5}
        axes.barh(rows, widths, left=starts, label=name, **fill)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    axes.set(xlim=(0, 100), xlabel="parts of a compiled call, mean shares, %")
    axes.legend(fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
