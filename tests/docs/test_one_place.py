"""One list of suites and one glossary, which hold what there is; quick."""

import re

import pyarrow.parquet as pq

from passnet.judge.suite.shipped import shipped_suites, task_names
from tests.docs.pages import PAGES, ROOT, page_name

LIST = ROOT / "docs" / "suites.md"
GLOSSARY = ROOT / "docs" / "glossary.md"


def test_the_list_of_suites_has_all_that_ship_with_their_sizes() -> None:
    row = re.compile(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d,]+) \|", re.MULTILINE)
    listed = {
        name: (int(tasks.replace(",", "")), int(graphs.replace(",", "")))
        for name, tasks, graphs in row.findall(LIST.read_text(encoding="utf-8"))
    }
    assert listed == {
        name: (len(task_names(path)), pq.read_metadata(path).num_rows)
        for name, path in shipped_suites().items()
        if "@" not in name
    }


def test_words_are_defined_in_the_glossary_alone() -> None:
    words = "task", "suite", "pass", "AS", "ES_t", "backend"
    defined = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*words} <= {word for cell in defined for word in cell.split(", ")}
    others = [page for page in PAGES if page != GLOSSARY]
    tables = [page_name(page) for page in others if "| word | meaning |" in page.read_text()]
    assert tables == []
