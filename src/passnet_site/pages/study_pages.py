"""The pages of studies and of a dataset, with their tables and figures."""

from collections.abc import Sequence
from pathlib import PurePath

from passnet.data.dataset.stats import Stats
from passnet.pages.figures.study_page import Study
from passnet.pages.tables.dataset import stats_tables
from passnet_site.pages.safe_text import file_stem
from passnet_site.pages.site_folder import SiteFolder
from passnet_site.pages.table_spec import bar_chart, of_text_table

NUM_OPS_DRAWN = 25


def write_studies(site: SiteFolder, studies: Sequence[Study]) -> None:
    """Write the page of every study, and the list of all."""
    pages = []
    (site.out / "studies").mkdir(parents=True, exist_ok=True)
    for number, study in enumerate(studies):
        page = study.page
        stem = f"{number:02}-{file_stem(study.name)}"
        figures = []
        for index, figure in enumerate(page.figures):
            name = f"{stem}-{index}{PurePath(figure.file).suffix}"
            study.drawings[figure.file](site.out / "studies" / name)
            figures.append((name, figure.caption))
        site.write_page(
            f"studies/{stem}.html",
            "study",
            {f"table-{n}": of_text_table(table) for n, table in enumerate(page.tables)},
            study=page,
            figures=figures,
        )
        pages.append((stem, page))
    site.write_page("studies/index.html", "studies", studies=pages)


def write_dataset(site: SiteFolder, stats: Stats) -> None:
    """Write the page of a dataset."""
    tables = stats_tables(stats)
    data = {f"table-{n}": of_text_table(table) for n, table in enumerate(tables)}
    data["sizes"] = bar_chart(_by_range(stats.sizes), "rows", "ops of a subgraph")
    data["places"] = bar_chart(_by_range(stats.multiplicity), "rows", "places of a subgraph")
    ops = stats.ops[:NUM_OPS_DRAWN]
    calls = {op.op.removeprefix("torch.nn.functional."): op.calls for op in ops}
    data["ops"] = bar_chart(calls, "calls")
    site.write_page("dataset.html", "dataset", data, stats=stats, tables=tables)


def _by_range(counts: Sequence[tuple[int, int, int]]) -> dict[str, int]:
    return {str(low) if low == high else f"{low}–{high}": count for low, high, count in counts}
