"""Every promise of the documentation names a test that shows it, and the test exists."""

import ast
import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
PROMISES = PAGE.split("\n## What is promised\n")[1].split("\n## ")[0]
ROWS = [line.strip("| ").split(" | ") for line in PROMISES.splitlines() if line.startswith("| ")]
SENTENCES = {row[0]: row[1] for row in ROWS[1:] if not row[0].startswith("**")}


def test_the_page_promises_something() -> None:
    assert len(SENTENCES) > 30 and all(sentence.endswith((".", "`.")) for sentence in SENTENCES)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_test_that_shows_a_promise_exists(sentence: str) -> None:
    named = re.fullmatch(r"`(tests/\S+\.py)::(test_\w+)(?:\[(\w+)\])?`", SENTENCES[sentence])
    assert named, "name a test as tests/folder/file.py::name"
    path, name, case = named.groups()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert case is None or (ROOT / "tests" / "exploits" / case / "case.json").is_file()
