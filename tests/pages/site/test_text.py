"""Text on its way into pages."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.pages.site.text import LEXERS, coloured
from passnet_site.pages.safe_text import file_stem, folder_diff, script
from passnet_site.pages.table_spec import ColumnSpec, table_spec
from tests.pages.site.runs import HOSTILE


def value_of(text: str) -> object:
    found = re.fullmatch(r'PASSNET\.put\("a",(.*)\);\n', text)
    assert found
    return json.loads(found[1])


@settings(max_examples=40)
@given(st.text())
def test_a_script_holds_no_letter_that_html_or_javascript_could_take_for_its_own(
    text: str,
) -> None:
    found = script("a", {text: [text]})
    assert not set("<>&\u2028\u2029") & set(found)
    assert found.encode().isascii() or found.isprintable() or found.endswith("\n")
    assert isinstance(value_of(found), dict)


def test_what_does_not_print_is_seen() -> None:
    assert value_of(script("a", "x\u202ey\x1b[2K")) == "x\\u202ey\\u001b[2K"
    assert "\\u202e" in coloured("a.py", "# \u202e") and "\u202e" not in coloured(
        "a.py", "# \u202e"
    )


@settings(max_examples=40)
@given(st.text(max_size=200))
def test_names_of_files_stay_where_they_are_put(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", file_stem(text))
    assert ".." not in file_stem(text) or "/" not in file_stem(text)


def test_names_of_files_differ_where_names_differ() -> None:
    names = ["A", "a", "a b", "a/b", "a\u202eb", HOSTILE, "", "."]
    assert len({file_stem(name) for name in names}) == len(names)


@given(st.text(max_size=99))
def test_no_name_has_the_name_of_the_file_of_another(text: str) -> None:
    stem = file_stem(text)
    assert stem == text or file_stem(stem) != stem


def test_source_is_coloured_as_text() -> None:
    found = coloured("a.py", f"x = 1  # {HOSTILE}")
    assert '<span class="c1">' in found and "<script" not in found and "<img" not in found
    assert "<script" not in coloured("a.unknown", HOSTILE)


PIECES = ("\n ", 'R"(', '"""', "'", "/*", "\\", "#\n", '"\\', "a", "@")


@pytest.mark.parametrize("lexer", dict.fromkeys(LEXERS.values()))
def test_colours_take_linear_time_on_texts_that_make_other_lexers_quadratic(lexer: type) -> None:
    for piece in PIECES:
        text = piece * (100_000 // len(piece))  # minutes for each piece where it is quadratic
        tokens = lexer(stripnl=False, ensurenl=False).get_tokens(text)
        assert sum(len(token) for _, token in tokens) == len(text)


def test_long_files_are_shown_as_gone_and_new_as_their_diff_takes_cubic_time() -> None:
    old, new = ("\n".join(str(i * step % 997) for i in range(40_000)) for step in (1, 7))
    found = folder_diff({"a.py": old}, {"a.py": new}).splitlines()
    assert found.count("-5") + found.count("+5") >= 80


def test_a_diff_tells_new_changed_and_gone_files() -> None:
    found = folder_diff({"a.py": "x\n", "b.py": "y\n"}, {"a.py": "z\n", "c.py": "w\n"})
    assert all(line in found.splitlines() for line in ("-x", "+z", "-y", "+w"))
    assert folder_diff({"a": "x"}, {"a": "x"}) == ""


def test_tags_that_repeat_are_given_once_as_texts_are() -> None:
    rows = [[["eager", "", ["eager", "verified"]]] for _ in range(9)]
    [column] = table_spec([ColumnSpec("candidate", "link")], rows)["columns"]
    assert column["levels"] == [["eager", "", ["eager", "verified"]]]
    assert column["values"] == [0] * 9
