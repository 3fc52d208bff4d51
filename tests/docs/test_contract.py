"""Every promise of docs/contract.md names tests and nets that exist; quick."""

import ast
import re

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs/contract.md"
TESTS = ROOT / "tests/optimizer"
NETS = ROOT / "tests/nets"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


def missing(tests: str, nets: str) -> list[str]:
    """The names of a row that lead nowhere."""
    found = []
    for name in re.findall(r"`([^`]+)`", tests):
        file, _, test = name.partition("::")
        path = TESTS / f"{file}.py"
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        if not any(each.startswith(test) for each in names if test.startswith("test_")):
            found.append(name)
    kinds = [NETS / "hazards", NETS / "harmless"]
    for name in re.findall(r"`([^`]+)`", nets):
        if not any((kind / f"{name}.py").is_file() for kind in kinds):
            found.append(name)
    return found


def test_there_are_promises() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_promise_names_tests_and_nets(row: list[str]) -> None:
    _, tests, nets = row
    assert tests, "a promise that no test shows"
    assert not missing(tests, nets)


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert missing("`test_budget::test_nothing`", "`no_net`") == [
        "test_budget::test_nothing",
        "no_net",
    ]
