"""Tables on narrow terminals: whole numbers and names, and columns in the order of their worth."""

import ast
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from passnet.cli import main
from passnet.data.capture.store import GraphSource, write_set
from passnet.pages.tables.tables import Table, print_table
from tests.bench.runs import captured
from tests.cli.test_help import commands, options_of
from tests.conftest import ROOT
from tests.data.dataset.rows import write
from tests.judge.folders import small_graph

JSON_WIDE = ("--json", "--wide")

NUMBERS = tuple(f"{1000.125 + number:.3f} – {2000.5 + number:.3f}" for number in range(9))
HEADS = ("candidate", *(f"head {number}" for number in range(9)))
TABLE = Table("T", HEADS, [("a", *NUMBERS)], least=("head 0", "head 8"))


def printed(table: Table, width: int, hint: str = "") -> str:
    console = Console(width=width, file=io.StringIO())
    print_table(console, table, hint)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_column_is_whole_or_named_below_the_table(width: int) -> None:
    text = printed(TABLE, width, "; see more")
    assert max(map(len, text.splitlines())) <= width
    above, below = text.split("hidden: ")
    hidden = " ".join(below.split()).removesuffix("; see more").split(", ")
    shown = [head for head in HEADS[1:] if head not in hidden]
    assert [number for number in NUMBERS if number in above] == [
        number for head, number in zip(HEADS[1:], NUMBERS, strict=True) if head in shown
    ]
    assert len(shown) == (width - 13) // 22, "no column is hidden that would fit"


def test_columns_of_least_worth_are_hidden_first_and_then_those_on_the_right() -> None:
    hidden = [printed(TABLE, width).split("hidden: ")[-1] for width in (200, 170, 150, 130)]
    heads = [" ".join(text.split()).replace("head ", "") for text in hidden]
    assert heads == ["0", "0, 8", "0, 7, 8", "0, 6, 7, 8"]
    assert "hidden" not in printed(TABLE, 240)
    assert "candidate" in printed(TABLE, 15)


def test_only_say_prints_lines_so_that_foreign_text_steers_no_terminal() -> None:
    own = ROOT / "src" / "passnet" / "cli" / "terminal" / "output.py"
    files = [
        path for room in ("src", "recipes", "integrations") for path in ROOT.glob(f"{room}/**/*.py")
    ]
    assert [str(path) for path in files if path != own and "click.echo" in path.read_text()] == []


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_foreign_names_and_findings_are_made_visible(more: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b]0;b\x07\x9b2J"
    shutil.copytree(ROOT / "examples" / "passes" / "rms_norm", folder)
    words = ["pass", "check", str(tmp_path), "--rules", "strict", *more]
    result = CliRunner().invoke(main, words)
    assert "\\u009b2J" in result.output and not {"\x1b", "\x07", "\x9b"} & {*result.output}
    if more:
        assert json.loads(result.stdout)["folder"] == str(folder)


def test_one_task_of_a_run_has_totals_of_its_own_and_an_unknown_one_is_named() -> None:
    words = ["bench", "show", str(ROOT / "baselines" / "demo"), "--json", "--task"]
    shown = json.loads(CliRunner().invoke(main, [*words, "rms_norm"]).stdout)
    for name, candidate in shown["candidates"].items():
        own = [trial for trial in shown["trials"] if trial["candidate"] == name]
        assert candidate["num_trials"] == len(own), name
    unknown = CliRunner().invoke(main, [*words, "rms_nrom"])
    assert unknown.exit_code == 2 and "did you mean rms_norm" in unknown.stderr


def test_the_page_of_a_dataset_comes_with_its_json(tmp_path: Path) -> None:
    data = write(tmp_path / "data")
    words = ["dataset", "stats", str(data), "--json", "--page", str(tmp_path / "p.md")]
    result = CliRunner().invoke(main, words)
    assert json.loads(result.stdout) and "written: " in result.stderr
    assert (tmp_path / "p.md").exists()


def test_text_breaks_between_words_and_a_name_does_not_break() -> None:
    name = "torch.nn.functional.scaled_dot_product_attention"
    table = Table("T", ("op", "says"), [(name, "it has no kernel for such arguments, " * 3)])
    text = printed(table, 90)
    assert name in text and all(word in text for word in ("kernel", "arguments,"))
    assert "hidden: says" in printed(table, 60) and name in printed(table, 60)


def test_a_note_breaks_at_the_width_of_the_terminal_and_not_of_the_table() -> None:
    lines = printed(Table("T", ("a",), [("1",)], "a note of some words " * 6), 80).splitlines()
    assert [len(line) > 60 for line in lines[6:8]] == [True, False]


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_a_run_fit_a_terminal(width: int) -> None:
    words = ["bench", "show", str(ROOT / "baselines" / "demo"), "--task", "rms_norm"]
    narrow = CliRunner().invoke(main, words, env={"COLUMNS": str(width)})
    tables = [line for line in narrow.stdout.splitlines() if line and line[0] in "┏┃┡│└"]
    assert narrow.exit_code == 0 and max(map(len, tables)) <= width
    assert "hidden: " in narrow.stdout and "; --wide shows all" in " ".join(narrow.stdout.split())
    wide = CliRunner().invoke(main, [*words, "--wide"], env={"COLUMNS": str(width)})
    assert "hidden: " not in wide.stdout
    assert max(len(line.split("│")) for line in wide.stdout.splitlines()) > 15


def test_every_command_that_prints_tables_can_print_all_columns_and_json() -> None:
    calls = [
        call
        for path in (ROOT / "src").rglob("*.py")
        if {"print_tables", "print_result"} & set(re.findall(r"\w+", text := path.read_text()))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
    ]
    called = [(getattr(c.func, "id", ""), len(c.args), {k.arg for k in c.keywords}) for c in calls]
    tables = [num_args for name, num_args, _ in called if name == "print_tables"]
    results = [(n, own) for name, n, own in called if name == "print_result" and (n > 3 or own)]
    assert len(tables) > 10 and set(tables) == {2}
    assert len(results) > 5 and all(n == 5 or own == {"tables", "wide"} for n, own in results)
    named = {name: {path for path in commands() if name in options_of(path)} for name in JSON_WIDE}
    assert named["--wide"] and named["--wide"] <= named["--json"]
    assert set(commands()) - named["--json"] == {("judge", "serve")}, (
        "only a server prints no result"
    )


def test_a_run_is_shown_as_json() -> None:
    words = ["bench", "show", str(ROOT / "baselines" / "demo"), "--task", "rms_norm", "--json"]
    shown = json.loads(CliRunner().invoke(main, words).stdout)
    assert {trial["task"] for trial in shown["trials"]} == {"rms_norm"}
    assert "examples/passes" in shown["candidates"]


def test_graphs_are_shown_as_json(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["suite", "show", "demo", "--task", "gelu_tanh", "--json"])
    graphs = json.loads(shown.stdout)
    assert {graph["task"] for graph in graphs} == {"gelu_tanh"}
    assert "torch.tanh" in graphs[0]["program"] and graphs[0]["arguments"][0]["name"] == "in_0"
    write_set(tmp_path, [captured(small_graph((8, 8)).graph, GraphSource("a/b", 0))], {})
    shown = CliRunner().invoke(main, ["graph", "show", str(tmp_path), "--json"])
    assert "torch.relu" in json.loads(shown.stdout)["program"]


def terminal_output(*words: str, **env: str) -> str:
    """Return what a command prints on a terminal."""
    outer, inner = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "passnet.cli", *words],
        env={**os.environ, "NO_COLOR": "", "TERM": "xterm-256color", **env},
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    parts = []
    try:
        while part := os.read(outer, 1 << 16):
            parts.append(part)
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(outer)
    assert child.wait() == 0
    return b"".join(parts).decode()


def test_no_color_means_no_escape_sequence_at_all() -> None:
    words = ("library", "list", "shipped")
    assert "\x1b[" in terminal_output(*words)
    assert "\x1b" not in terminal_output(*words, NO_COLOR="1")
