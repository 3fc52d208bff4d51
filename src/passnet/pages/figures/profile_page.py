"""A study of profiles as a page of Markdown with its figure, and as one of a site."""

from collections.abc import Sequence
from pathlib import Path

from passnet.bench.environment import Environment
from passnet.bench.profiling.record import PART_NAMES
from passnet.bench.profiling.run import profile_folder, read_profiles
from passnet.bench.profiling.study import PUBLISHED, GroupShare, Study, study
from passnet.errors import naming
from passnet.pages.figures.study_page import StudyFigure, StudyPage, write_study_page
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
"""Of the palette of Okabe and Ito, which colour-blind people tell apart."""

FIGURE_GROUPS = ("time", "ops", "domain", "dtype", "library")


FIGURE = "shares.svg"


def write_profile_page(folder: Path) -> StudyPage:
    """Write what the profiles in a folder say into it, as a study that `passnet report` shows.

    Raises:
        InputError: it holds no profiles, none was measured, or it cannot be written.
    """
    records = read_profiles([folder])
    found = study(records)
    draw_study(found, folder / FIGURE)
    kinds = " and ".join(sorted({f"{record.kind}s" for record in records}))
    parts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found.parts.items())
    left_out = ", ".join(f"{cause} {count}" for cause, count in found.left_out.items())
    environment = profile_folder(folder).read_info().environment
    page = StudyPage(
        title=f"Where torch.compile loses: {folder.resolve().name}",
        finding=f"{_per_cent(found.slower.value)} of {found.num_measured:,} {kinds} are slower "
        "under torch.compile than in eager torch from end to end (published: "
        f"{100 * PUBLISHED['slower']:.0f} %), and {_per_cent(found.slower_direct.value)} when "
        "their compiled graph is called directly.",
        paragraphs=(
            f"Mean shares of a compiled call: {parts}.",
            f"Left out, of {found.num_items:,}: {left_out or 'none'}.",
        ),
        tables=tuple(study_tables(found)),
        figures=(StudyFigure(FIGURE, "Share of slower calls by group, and parts of their time."),),
        measured_on=_place(environment) if environment is not None else "",
    )
    write_study_page(folder, page)
    return page


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _place(environment: Environment) -> str:
    return (
        f"{environment.cpu}, {environment.num_cpus} processors, torch {environment.torch}, "
        f"{environment.compiler}"
    )


def study_page(found: Study, environments: Sequence[Environment], figure: str) -> str:
    """The text of the page; `figure` is the name of its figure's file."""
    where = "; ".join(dict.fromkeys(map(_place, environments))) or "no known machine"
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
