"""The catalogue of findings: complete, and what the documentation says of it."""

import ast
import re

import pytest

from passnet.judge.inspection.rules import RULES
from passnet.judge.verdict.findings import (
    CATALOGUE,
    Finding,
    finding,
    forbids_running,
)
from tests.conftest import ROOT

SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "src/passnet/judge").rglob("*.py")]


def findings_table() -> str:
    """Return the catalogue as a Markdown table, for the documentation."""
    rows = [
        f"| `{kind.name}` | {', '.join(kind.severities)} | {kind.proof} | {kind.meaning} |"
        for kind in CATALOGUE.values()
    ]
    return "\n".join(
        ["| finding | severity | shown by | what it says |", "|---|---|---|---|", *rows]
    )


def test_the_table_in_the_documentation_is_that_of_the_catalogue() -> None:
    page = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
    assert findings_table() in page, findings_table()


def test_each_name_is_described_by_one_sentence_and_one_severity_or_more() -> None:
    for name, kind in CATALOGUE.items():
        assert name == kind.name and kind.severities
        assert kind.meaning[0].isupper() and kind.meaning.endswith(".")


def test_a_finding_has_the_usual_severity_of_its_name() -> None:
    assert finding("late_write", "changed") == Finding("reject", "late_write", "changed")
    with pytest.raises(KeyError):
        finding("late_wrote", "changed")


def test_every_name_and_severity_that_the_judge_gives_is_in_the_catalogue() -> None:
    given = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Tuple) and len(node.elts) == 2:
                pair = [element.value for element in node.elts if isinstance(element, ast.Constant)]
                severities = {"reject", "flag", "note"}
                if len(pair) == 2 and pair[0] in severities and pair[1] not in severities:
                    given.add((pair[1], pair[0]))
    assert given, "the rules of the inspection name findings"
    for name, severity in given:
        assert severity in CATALOGUE[name].severities, (name, severity)
    called = {name for source in SOURCES for name in re.findall(r'finding\(\s*"(\w+)"', source)}
    assert called >= {"late_write", "static_buffer", "torch_fallback"} and called <= set(CATALOGUE)
    assert set(RULES) == {"open", "strict"}


def test_only_a_proof_in_the_text_keeps_a_candidate_from_running() -> None:
    text = Finding("reject", "torch_fallback", "torch.softmax", "Fuse.py:3")
    assert forbids_running([text])
    assert not forbids_running([finding("hard_coded_shape", "on the held-out a-0")])
    assert not forbids_running([Finding("flag", "thread", "threading", "Fuse.py:1")])
