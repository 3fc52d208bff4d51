"""Lines of prose in the documentation are at most 120 characters wide; quick."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.pages import PAGES, page_name

MAX_WIDTH = 120


def wide_lines(text: str) -> list[int]:
    """Return the numbers of wide lines outside tables, images and fenced blocks."""
    wide, is_fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        start = line.lstrip()
        if start.startswith("```"):
            is_fenced = not is_fenced
        elif len(line) > MAX_WIDTH and not is_fenced and not start.startswith(("|", "![")):
            wide.append(number)
    return wide


@pytest.mark.parametrize("page", [*PAGES, ROOT / "AGENTS.md"], ids=page_name)
def test_lines_of_a_page_are_at_most_120_wide(page: Path) -> None:
    assert wide_lines(page.read_text(encoding="utf-8")) == []


def test_only_wide_prose_is_found() -> None:
    wide = "x" * 121
    text = f"{wide}\n| {wide} |\n![{wide}](a.png)\n```\n{wide}\n```\n- {wide[:118]}\n- {wide}\n"
    assert wide_lines(text) == [1, 8]
