"""The baselines of a suite by one command: written, judged, put together, with their table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from passnet.bench.run_record import RUN_FILE, TRIALS_FILE, BenchRunInfo
from passnet.bench.scores import Row
from passnet.core.records.serialise import read_json
from passnet.judge.suite.suite import load_suite, make_suite, write_suite
from recipes.baselines import CANDIDATES, rows_with_choice, table_rows
from recipes.vendor_site import FOLDER, PACKAGES
from tests.conftest import ROOT


def _row(name: str, smallest_t: int, low: float, high: float) -> Row:
    return Row(
        task=name, graph=name, status="ok", smallest_t=smallest_t, speedup=(low * high) ** 0.5,
        candidate="mine", speedup_low=low, speedup_high=high,
    )  # fmt: skip


def test_what_is_not_correct_is_neither_faster_nor_slower() -> None:
    rows = [
        _row("right-and-faster", -5, 1.06, 1.2),
        _row("right-and-about-as-fast", -10, 1.04, 1.2),
        _row("wrong-and-faster", -4, 2.0, 2.1),
        _row("right-and-slower", -6, 0.8, 0.95),
        _row("wrong-and-slower", 1, 0.8, 0.9),
    ]
    [line] = table_rows(rows)
    assert line.startswith("| `mine` | ")
    assert line.endswith(" | 60.0 | 20.0 | 20.0 |")


def test_a_candidate_whose_trials_are_all_unstable_has_a_row_without_numbers() -> None:
    unstable = Row("a", "a", "unstable", None, None, "search@guarded")
    first, second = table_rows([_row("a", -5, 1.06, 1.2), unstable])
    assert second.startswith("| `search@guarded` | not measured, ")
    assert first.count("|") == second.count("|")


def test_the_libraries_of_the_site_are_where_their_recipe_writes_them() -> None:
    files = {file for package in PACKAGES for file in package.files.values()}
    assert files == {path.name for path in FOLDER.iterdir()}


@pytest.mark.slow
def test_one_command_makes_them_and_a_second_one_only_puts_them_together(tmp_path: Path) -> None:
    task = load_suite("passbench-v1-single-small").tasks[0]
    write_suite(tmp_path / "one.parquet", make_suite("one", task.graphs))
    command = [sys.executable, "-m", "recipes.baselines", str(tmp_path / "one.parquet")]
    command += [str(tmp_path / "out"), "--cores", "1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    run = tmp_path / "out" / "run"
    rows = rows_with_choice(run)
    assert {row.candidate for row in rows} == {*CANDIDATES, "choice"}
    table = list(table_rows(rows))
    assert first.stdout.splitlines()[-len(table) :] == table
    info = read_json(run / RUN_FILE, BenchRunInfo)
    assert {item.root for item in info.candidates} == {None, "compiler", "search"}
    assert str(tmp_path) not in (run / TRIALS_FILE).read_text(encoding="utf-8")
    second = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert second.stdout.splitlines()[-len(table) :] == table
