"""`passnet dataset` over a dataset that is there: what it prints, writes, refuses, exits with."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from passnet.judge.suite.suite import make_suite, write_suite
from passnet.judge.task import TaskGraph
from tests.data.dataset.rows import CHAIN, ROWS, write
from tests.data.dataset.test_query import edit_manifest
from tests.graph.programs import graph_of


def run(*args: object) -> Result:
    done = CliRunner().invoke(main, ["dataset", *map(str, args)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def test_query_prints_a_table_json_or_csv(folder: Path):
    done = run("query", folder, "'fusible' in kinds")
    assert "3 of 3 rows that match" in done.stdout and "fusible" in done.stdout
    assert "2 of 3 rows that match" in run("query", folder, "num_ops=2", "--limit", 2).stdout
    found = json.loads(run("query", folder, "num_ops = 1", "--json", "--columns", "all").stdout)
    assert len(found) == 2 and {item["full"] for item in found} == {
        row.full for row in ROWS if row.num_ops == 1
    }
    assert all(isinstance(item["places"], list) for item in found)
    text = run("query", folder, "--csv", "--columns", "full, kinds").stdout
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["full", "kinds"] and len(rows) == 7
    assert ["classical", "fusible"] in [row[1].split() for row in rows]


def test_query_says_what_is_wrong_with_a_filter(folder: Path):
    done = run("query", folder, "kind = 'single'")
    assert done.exit_code == 2 and '"kind" not found' in done.stderr
    assert run("query", folder, "--columns", "no").exit_code == 2
    assert run("query", folder, "--json", "--csv").exit_code == 2
    assert run("query", folder / "none").exit_code == 2


def test_a_number_of_sizes_without_sizes_is_refused(tmp_path: Path):
    out = tmp_path / "out"
    done = run("build", tmp_path, "--out", out, "--num-sizes", 3)
    assert done.exit_code == 2 and "--num-sizes goes with --sizes" in done.stderr
    assert "--num-sizes" not in run("build", tmp_path, "--out", out).stderr
    assert "--num-sizes" not in run("build", tmp_path, "--out", out, "--sizes").stderr


def test_stats_are_tables_json_or_a_page(folder: Path, tmp_path: Path):
    assert "rows (distinct subgraphs)" in run("stats", folder).stdout
    assert json.loads(run("stats", folder, "--json").stdout)["num_places"] == 27
    assert run("stats", folder, "--page", tmp_path / "page.md").exit_code == 0
    assert "page.svg" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "page.svg").read_text().startswith("<?xml")
    done = run("stats", folder, "--page", tmp_path / "none" / "page.md")
    assert done.exit_code == 2 and "page.svg: No such file or directory" in done.stderr


def test_show_prints_a_row_by_the_first_of_its_fingerprint(folder: Path):
    row = ROWS[3]
    done = run("show", folder, row.full[:12])
    assert "torch.tanh(a)" in done.stdout and "1, 2, 3, 4" in done.stdout
    assert json.loads(run("show", folder, row.full, "--json").stdout)["num_ops"] == 1


def test_show_lists_candidates_and_refuses_what_is_none(tmp_path: Path):
    names = [f"{number:x}" * 64 for number in range(12)]
    rows = [replace(ROWS[0], full="ab" + name[2:]) for name in names]
    folder = write(tmp_path / "data", rows)
    done = run("show", folder, "ab")
    assert done.exit_code == 2 and "several fingerprints begin with ab: ab0" in done.stderr
    assert ", …; give more" in done.stderr
    assert "no row has a fingerprint that begins with ff" in run("show", folder, "ff").stderr
    assert "is not the beginning" in run("show", folder, "a' or 'a").stderr


def test_query_and_export_take_rows_by_the_licence_of_their_source(tmp_path: Path):
    nets = ("timm/one", "ultralytics/two")
    rows = [replace(row, nets=(net,)) for row, net in zip(ROWS, nets, strict=False)]
    folder, out = write(tmp_path / "data", rows), tmp_path / "out"
    asked = ("--source-license", "Apache-2.0")
    [row] = json.loads(run("query", folder, *asked, "--columns", "all", "--json").stdout)
    assert row["nets"] == ["timm/one"] and row["licences"] == ["Apache-2.0"]
    done = run("export", folder, "--layout", "hf", "--out", out, *asked)
    assert done.exit_code == 0 and "1 rows as 1 files" in done.stdout
    assert "AGPL-3.0" in run("show", folder, rows[1].full).stdout
    done = run("query", folder, "--source-license", "AGPL")
    assert done.exit_code == 2 and "did you mean AGPL-3.0" in done.stderr


def test_verify_exits_with_one_where_something_is_wrong(folder: Path):
    done = run("verify", folder, "--jobs", 1)
    assert done.exit_code == 0 and "6 rows, 0 wrong; 0 errors of files; 0 run" in done.stdout
    edit_manifest(folder, num_places=5)
    done = run("verify", folder, "--jobs", 1)
    assert done.exit_code == 1 and "WRONG dataset.json: num_places is 5" in done.stdout
    done = run("verify", folder, "--jobs", 1, "--json")
    assert done.exit_code == 1 and json.loads(done.stdout)["ok"] is False
    edit_manifest(folder, schema_version=7)
    done = run("verify", folder)
    assert done.exit_code == 2 and "schema version 7, this passnet reads 1" in done.stderr


def test_export_and_import_say_what_they_did(folder: Path, tmp_path: Path):
    done = run("export", folder, "--out", tmp_path / "out", "--layout", "passnet")
    assert "6 rows as 7 directories, 4 tasks, in" in done.stdout
    done = run("import", tmp_path / "out", "--out", tmp_path / "back")
    assert "7 graphs read, 0 left out; 6 rows, in" in done.stdout
    again = run("export", folder, "--out", tmp_path / "out", "--layout", "hf")
    assert again.exit_code == 2 and "already exists" in again.stderr
    path = next((tmp_path / "out").rglob("model.py"))
    path.write_text("(")
    done = run("import", tmp_path / "out", "--out", tmp_path / "less")
    assert "LEFT OUT graphs/" in done.stdout and "1 left out" in done.stdout
    done = run("import", tmp_path / "out", "--out", tmp_path / "none", "--strict")
    assert done.exit_code == 2 and "not Python" in done.stderr


def test_a_split_is_made_checked_and_exported(folder: Path, tmp_path: Path):
    suite = tmp_path / "own.parquet"
    write_suite(suite, make_suite("own", [TaskGraph("t", "g", graph_of(CHAIN))]))
    place = tmp_path / "split"
    done = run("split", folder, "--out", place, "--share", 0, "--eval", suite)
    assert "train: 5 rows of 2 op sequences, eval: 1 rows of 1 op sequences" in done.stdout
    done = run("leaks", folder, "--split", place, "--eval", suite)
    assert done.exit_code == 0 and "0 of 6 rows leak" in done.stdout
    run("split", folder, "--out", tmp_path / "other", "--share", 0)
    done = run("leaks", folder, "--split", tmp_path / "other", "--eval", suite)
    assert done.exit_code == 1
    assert f"LEAK {ROWS[-1].full}: op sequence of own" in done.stdout
    done = run("export", folder, "--out", tmp_path / "hf", "--layout", "hf", "--split", place)
    assert "6 rows as 2 files" in done.stdout
    refused = run("export", folder, "--out", tmp_path / "g", "--layout", "graphnet",
                  "--split", place)  # fmt: skip
    assert refused.exit_code == 2 and "--split is for --layout hf" in refused.stderr
