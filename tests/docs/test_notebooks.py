"""The code cells of the notebooks, run in order in a folder of their own."""

import json
from pathlib import Path

import pytest

from tests.docs.page_process import PageProcess
from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[str]:
    """Return the texts of a notebook's cells of a kind."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def test_there_is_one_for_optimising_and_one_for_judging() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["judge", "optimize"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4 and cells(notebook, "markdown")[0].startswith("# ")
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in content["cells"])


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    with PageProcess(tmp_path) as process:
        for cell in cells(notebook, "code"):
            process.run(cell)
