"""The pages of studies and of a dataset, with their tables and figures."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from passnet.data.dataset.stats import Stats
from passnet.pages.figures.study_page import Study
from passnet.pages.site.pages import SiteFolder
from passnet.pages.site.table_spec import of_text_table
from passnet.pages.site.text import file_stem
from passnet.pages.tables.dataset import stats_tables

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
            section="studies/index.html",
        )
        pages.append((stem, page))
    site.write_page("studies/index.html", "studies", studies=pages, section="studies/index.html")


def write_dataset(site: SiteFolder, stats: Stats) -> None:
    """Write the page of a dataset."""
    tables = stats_tables(stats)
    given: dict[str, Any] = {f"table-{n}": of_text_table(table) for n, table in enumerate(tables)}
    given["sizes"] = _bars(stats.sizes, "ops of a subgraph")
    given["places"] = _bars(stats.multiplicity, "places of a subgraph")
    ops = stats.ops[:NUM_OPS_DRAWN]
    given["ops"] = {
        "kind": "bars",
        "horizontal": True,
        "label": "calls",
        "labels": [op.op.removeprefix("torch.nn.functional.") for op in ops],
        "values": [op.calls for op in ops],
    }
    lead = (
        f"{stats.num_rows:,} distinct subgraphs with {stats.num_ops:,} ops, found in "
        f"{stats.num_places:,} places of captured nets."
    )
    site.write_page(
        "dataset.html", "dataset", given, lead=lead, tables=tables, section="dataset.html"
    )


def _bars(counts: Sequence[tuple[int, int, int]], label: str) -> dict[str, Any]:
    return {
        "kind": "bars",
        "horizontal": False,
        "label": "rows",
        "xLabel": label,
        "labels": [str(low) if low == high else f"{low}–{high}" for low, high, _ in counts],
        "values": [count for *_, count in counts],
    }
