"""Scoring of any JSON-lines file: what a row needs, what is left out, what is refused."""

import json
from pathlib import Path

import pytest

from passnet.bench.scores import as_json, read_rows, score_rows, untimed_candidates
from passnet.errors import InputError, MeasureError
from passnet.pages.tables.tables import total_table
from tests.bench.runs import passnet

ROWS = [
    {"task": "a", "graph": "a0", "status": "ok", "smallest_t": -5, "speedup": 2.0},
    {"task": "a", "graph": "a1", "status": "ok", "smallest_t": None, "speedup": None},
    {"task": "b", "graph": "b0", "status": "no_match", "smallest_t": None, "speedup": None,
     "note": "fields that a score does not need are ignored"},
]  # fmt: skip


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_of_any_origin_are_scored(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    done = passnet("bench", "score", path, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["es"]["-5"] == pytest.approx(((2.0 * 0.1) ** 0.5 * 0.1) ** 0.5)
    assert result["es_pooled"]["-5"] == pytest.approx((2.0 * 0.1 * 0.1) ** (1 / 3))
    assert result["columns"]["subgraph_correct"] == pytest.approx(1 / 3)
    assert result["statuses"] == {"ok": 2, "no_match": 1}
    low, high = result["as_interval"]["both"]
    assert low <= result["as"] <= high


def test_several_candidates_are_told_apart(tmp_path: Path) -> None:
    rows = [{**row, "candidate": name} for name in ("x", "y") for row in ROWS]
    result = json.loads(
        passnet("bench", "score", write(tmp_path / "rows.jsonl", rows), "--json").stdout
    )
    assert list(result["candidates"]) == ["x", "y"]
    assert result["candidates"]["x"]["as"] == result["candidates"]["y"]["as"]


def test_an_unstable_trial_is_counted_and_not_scored(tmp_path: Path) -> None:
    unstable = {"task": "b", "graph": "b1", "status": "unstable", "smallest_t": -5, "speedup": None}
    alone = {"task": "c", "graph": "c0", "status": "unstable", "smallest_t": None, "speedup": None}
    plain = score_rows(read_rows(write(tmp_path / "plain.jsonl", ROWS)))[0]
    more = score_rows(read_rows(write(tmp_path / "more.jsonl", [*ROWS, unstable, alone])))[0]
    assert more.suite == plain.suite
    assert (more.num_unstable, more.num_tasks_unscored, more.num_trials) == (2, 1, 5)


def test_a_candidate_that_was_never_timed_has_no_score_and_hides_no_other(tmp_path: Path) -> None:
    row = {"task": "a", "graph": "a0", "status": "unstable", "smallest_t": -5, "speedup": None}
    busy = {**row, "candidate": "busy"}
    rows = read_rows(write(tmp_path / "rows.jsonl", [*ROWS, busy]))
    assert [score.candidate for score in score_rows(rows)] == ["candidate"]
    assert untimed_candidates(rows) == ["busy"]
    with pytest.raises(MeasureError, match="busy: every trial is unstable.* --retry"):
        score_rows(read_rows(write(tmp_path / "rows.jsonl", [busy])))


def test_of_a_trial_that_was_judged_anew_in_a_run_the_last_record_counts(tmp_path: Path) -> None:
    again = ROWS[0] | {"speedup": 3.0}
    write(tmp_path / "trials.jsonl", [*ROWS, again])
    for path in (tmp_path, tmp_path / "trials.jsonl"):
        assert [row.speedup for row in read_rows(path)] == [3.0, None, None]


def test_equal_rows_are_trials_of_their_own(tmp_path: Path) -> None:
    [score] = score_rows(read_rows(write(tmp_path / "rows.jsonl", [ROWS[0], ROWS[0], ROWS[2]])))
    assert score.num_trials == 3


BAD_ROWS = {
    "an unknown status": ({**ROWS[0], "status": "fine"}, "row 1: unknown status 'fine'"),
    "a correct trial without a speedup": ({**ROWS[0], "speedup": None}, "trial a/a0: speedup"),
    "a level beyond the scale": ({**ROWS[0], "smallest_t": 7}, "smallest_t is 7"),
    "a missing field": ({"task": "a"}, "missing required field `graph`"),
    "a text for a number": ({**ROWS[0], "speedup": "fast"}, "speedup"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_is_named(name: str, tmp_path: Path) -> None:
    row, message = BAD_ROWS[name]
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        score_rows(read_rows(write(tmp_path / "rows.jsonl", [row])))


def test_what_is_no_run_is_refused_in_one_sentence(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    for path, message in (
        (tmp_path / "gone", "cannot read"),
        (tmp_path, "holds no trials.jsonl"),
        (empty, "holds no trial"),
    ):
        done = passnet("bench", "score", path)
        assert done.returncode == 2 and message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    bad = passnet("bench", "score", write(tmp_path / "rows.jsonl", ROWS), "--b", "0")
    assert bad.returncode == 2 and "--b': 0.0 is not in the range" in bad.stderr


ROOFLINE = {
    "bytes_read": 3_000_000, "bytes_written": 1_000_000, "products": 0, "elementwise": 0,
    "moved_per_s": 4e9, "written_per_s": 4e9, "products_per_s": 0.0, "elementwise_per_s": 0.0,
}  # fmt: skip
"""A graph whose T_sol is 1 ms."""


def test_the_score_against_the_hardware_is_made_from_the_records(tmp_path: Path) -> None:
    limited = {"reference_ms": 5.0, "roofline": ROOFLINE, "speedup_low": 1.9, "speedup_high": 2.1}
    path = write(tmp_path / "rows.jsonl", [ROWS[0] | limited, *ROWS[1:]])
    result = json.loads(passnet("bench", "score", path, "--json").stdout)
    assert result["tasks_sol"] == {"a": pytest.approx(4 / 11), "b": 0.0}  # (8/11 + 0) / 2
    assert result["sol"] == pytest.approx(2 / 11)
    assert result["roofline_share"] == pytest.approx(0.4)
    assert result["sol_interval"].keys() == result["as_interval"].keys()
    assert result["sol_interval"]["tasks"] == [0.0, pytest.approx(4 / 11)]
    low, high = result["sol_interval"]["repeats"]
    assert 0.17 < low < result["sol"] < high < 0.19
    shown = passnet("bench", "score", path, "--wide").stdout
    low, high = result["sol_interval"]["both"]
    assert all(text in shown for text in ("0.182", " / 0.36", f"{low:.3f} – {high:.3f}"))


def test_records_without_it_show_a_dash(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    scores = score_rows(read_rows(path))
    assert as_json(scores)["sol"] is None
    assert as_json(scores)["tasks_sol"] == as_json(scores)["sol_interval"] == {}
    table = total_table(scores)
    cells = dict(zip(table.heads, table.rows[0], strict=True))
    assert (cells["S"], cells["roof %"]) == ("–", "–") and "S interval" not in cells
