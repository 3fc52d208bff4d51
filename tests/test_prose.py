"""The prose of docstrings: first lines say what a thing is or does, in one clause."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

OPENING = re.compile(r"(What|Whether|Where|How|Which|Why)\b")
CHAIN = re.compile(
    r"\b(of|by|with|to|from|in) (which|what|that)\b"
    r"|\bthose (that|of|which|who)\b"
    r"|\bwhat (is|was|it|they|comes|came)\b"
)
MAX_OPENINGS, MAX_CHAINS = 0.03, 0.01
"""Largest shares of first lines that begin with a question word, or hold a chain of relative
clauses."""


def first_lines(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the first line of every docstring below a folder."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(
                node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            ) and (text := ast.get_docstring(node)):
                name = getattr(node, "name", "module")
                yield f"{path.relative_to(folder)}: {name}", text.strip().split("\n")[0]


def faults(folder: Path, pattern: re.Pattern[str], search: bool) -> tuple[list[str], int]:
    """Return the first lines that a pattern matches, and the number of all first lines."""
    lines = list(first_lines(folder))
    match = pattern.search if search else pattern.match
    return [f"{place}: {line}" for place, line in lines if match(line)], len(lines)


@pytest.mark.parametrize(
    ("pattern", "search", "most"),
    [(OPENING, False, MAX_OPENINGS), (CHAIN, True, MAX_CHAINS)],
    ids=["openings", "chains"],
)
def test_first_lines_read_once(pattern: re.Pattern[str], search: bool, most: float) -> None:
    found, num_lines = faults(SOURCE, pattern, search)
    assert len(found) <= most * num_lines, "\n".join(found)


def test_a_riddle_is_found(tmp_path: Path) -> None:
    (tmp_path / "riddle.py").write_text(
        '"""What comes of what was judged."""\n\ndef f():\n    """Those that are left."""\n'
    )
    assert faults(tmp_path, OPENING, False)[0] == [
        "riddle.py: module: What comes of what was judged."
    ]
    assert len(faults(tmp_path, CHAIN, True)[0]) == 1
