"""Replay: the trials of a past run give the same scores and tables, byte for byte.

The runs are those of `baselines/`; what `bench run` writes beside their trials lies with them, and
what `bench score` prints of them in `tests/golden/`. A change of wording or arithmetic shows here.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.bench.run_record import SCORES_FILE, TABLES_FILE, run_folder
from passnet.bench.scores import as_json, read_rows, score_rows
from passnet.bench.shares import shares_for
from passnet.cli import main
from passnet.core.records.serialise import write_json
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY
from passnet.pages.tables.tables import markdown, task_overview, task_tables, total_table
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"
RUNS = ["demo", "passbench-v0"]
GROUPINGS = [f"--by={name}" for name in ("time", "ops", "dtype", "domain", "library")]


@pytest.mark.parametrize("name", RUNS)
def test_scores_and_tables_of_a_recorded_run_are_the_same_bytes(name: str, tmp_path: Path) -> None:
    run = ROOT / "baselines" / name
    scores, shares = score_rows(read_rows(run)), shares_for(run)
    tables = [total_table(scores, shares), task_overview(scores)]
    tables += task_tables(list(run_folder(run).records().values()))
    write_json(tmp_path / SCORES_FILE, as_json(scores, SEVERE_PENALTY, SLOWDOWN_PENALTY, shares))
    assert (tmp_path / SCORES_FILE).read_bytes() == (run / SCORES_FILE).read_bytes()
    assert markdown(tables).encode() == (run / TABLES_FILE).read_bytes()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("form", ["json", "txt"])
def test_bench_score_prints_the_same_bytes(name: str, form: str) -> None:
    words = ["bench", "score", str(ROOT / "baselines" / name), *GROUPINGS]
    result = CliRunner().invoke(main, [*words, "--json" if form == "json" else "--wide"])
    assert result.exit_code == 0, result.output
    expected = GOLDEN / name / {"json": "groups.json", "txt": "score.txt"}[form]
    assert result.stdout_bytes == expected.read_bytes()
