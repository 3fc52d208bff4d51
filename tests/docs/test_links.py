"""Every link in a Markdown file of the repository leads to a file and a heading; quick."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def markdown_files() -> list[Path]:
    """Return the Markdown files that belong to the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).exists()]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    names: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        names.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return names


def broken_links(file: Path, text: str) -> list[str]:
    """Return the links of a page whose file or heading does not exist."""
    broken = []
    for link in _LINK.findall(_CODE.sub("", _FENCE.sub("", text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        is_heading = bool(anchor) and target.suffix == ".md"
        if not target.exists() or (is_heading and anchor not in anchors(target.read_text())):
            broken.append(link)
    return broken


def test_every_link_of_a_markdown_file_resolves() -> None:
    broken = {
        file.relative_to(ROOT).as_posix(): links
        for file in markdown_files()
        if (links := broken_links(file, file.read_text()))
    }
    assert broken == {}


def test_a_broken_link_and_a_missing_heading_are_found() -> None:
    text = "[a](nowhere.md) [b](#nowhere) [c](#a-heading)\n\n# A heading\n"
    page = ROOT / "README.md"
    assert broken_links(page, text) == ["nowhere.md", "#nowhere", "#a-heading"]
    assert anchors(text) == {"a-heading"}
