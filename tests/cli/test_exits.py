"""Exit codes and the sentences that go with them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from passnet.cli.terminal.exits import CODES
from tests.bench.runs import QUICK, passnet, write_small_suite
from tests.conftest import ROOT
from tests.judge.folders import write_passes

ROWS = [
    {"task": "a", "graph": "a0", "status": "ok", "smallest_t": -5, "speedup": 2.0},
    {"task": "b", "graph": "b0", "status": "unstable", "smallest_t": -5, "speedup": None},
]


def score(path: Path, *words: str, **candidates: list[dict]) -> Result:
    rows = [{**row, "candidate": name} for name, its in candidates.items() for row in its]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return CliRunner().invoke(main, ["bench", "score", str(path), *words])


def test_a_score_below_what_is_asked_for_fails_with_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert score(path, "--fail-under", "1.9", mine=ROWS).exit_code == 0
    low = score(path, "--fail-under", "2.5", mine=ROWS)
    assert low.exit_code == 1
    assert low.stderr == "passnet: mine has AS 1.995; --fail-under asks for 2.5\n"
    assert "AS by task" in low.stdout
    as_json = score(path, "--fail-under", "2.5", "--json", mine=ROWS)
    assert as_json.exit_code == 1 and json.loads(as_json.stdout)["num_unstable"] == 1


def test_baselines_need_no_score_beside_a_candidate_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    slow = [{**ROWS[0], "speedup": 0.5}]
    assert score(path, "--fail-under", "1", **{"eager@direct": slow, "mine": ROWS}).exit_code == 0
    assert score(path, "--fail-under", "1", eager=slow).exit_code == 1


def test_what_could_not_be_timed_has_no_score_to_be_content_with(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    busy = score(path, "--fail-under", "1", good=ROWS, busy=ROWS[1:])
    assert busy.exit_code == 1 and "busy has no AS, as no trial of it could be timed" in busy.stderr
    quiet = score(path, good=ROWS, busy=ROWS[1:])
    assert quiet.exit_code == 0 and "note: busy: every trial is unstable" in quiet.stderr
    alone = score(path, busy=ROWS[1:])
    assert alone.exit_code == 1 and "on a quieter machine" in alone.stderr


def test_the_exit_codes_are_in_the_help_and_in_one_page() -> None:
    text = CliRunner().invoke(main, ["--help"]).stdout
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    for code, meaning in CODES.items():
        assert f"{code:<4} {meaning}" in text and f"| {code} | {meaning} |" in page


@pytest.mark.slow
def test_a_run_in_which_nothing_can_be_compiled_fails(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    broken = write_passes(tmp_path / "broken", "raise ValueError('not today')\n")
    run = ("bench", "run", "--suite", suite, "--task", "add_relu", *QUICK)
    done = passnet(*run, "--candidate", broken, "--out", tmp_path / "run")
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("passnet: none of 1 trials could be compiled")
    beside = passnet(*run, "--candidate", broken, "--candidate", "eager@direct", "--out",
                     tmp_path / "both", "--fail-under", "0.9")  # fmt: skip
    assert beside.returncode == 1 and "--fail-under asks for 0.9" in beside.stderr
