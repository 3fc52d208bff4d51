"""The pass that docs/passes.md teaches: it matches where the page says, and is right there."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.cli import main
from tests.bench.runs import lines
from tests.docs.page_passes import PAGE, write_passes_of_the_page
from tests.docs.pages import blocks, commands

pytestmark = pytest.mark.slow  # reason: judges a pass on four graphs in a sandbox
_, MATCHES, MISS = blocks(PAGE, "text")


@pytest.fixture
def my_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_passes_of_the_page(tmp_path / "my_passes")
    return tmp_path / "my_passes"


def output_of(start: str, *more: str) -> str:
    """Return what a command of the page prints, with more words."""
    [words] = [each.words for each in commands(PAGE) if each.text.startswith(start)]
    done = CliRunner().invoke(main, [*words[1:], *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_check_prints_what_the_page_shows(my_passes: Path) -> None:
    assert output_of("passnet pass check") == MATCHES
    file = my_passes / "FuseGelu.py"
    file.write_text(file.read_text().replace("x: float32 or bfloat16,", "x: float32,"))
    assert MISS in output_of("passnet pass check")


def test_the_pass_is_right_on_every_graph_of_its_task(my_passes: Path, tmp_path: Path) -> None:
    output_of("passnet bench run", "--seconds", "0.05", "--self-tolerance", "100")
    assert [trial["status"] for trial in lines(tmp_path / "runs" / "gelu")] == ["ok"] * 4
