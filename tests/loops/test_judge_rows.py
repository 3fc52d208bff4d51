"""Training data judged row by row: in parts, after a kill, and without what is wrong."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.jobs.run_plan import RunPlan, RunShard
from passnet.errors import InputError
from passnet_loops.data.build import VERDICTS_FILE, read_training, row_key, write_rows
from passnet_loops.data.judge_rows import judge_training, judging_run

SHIPPED = Path(__file__).parents[2] / "training"
HALVES = (RunShard(1, 2), RunShard(2, 2))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven short rows: one has a verdict, one is wrong, which nobody knows yet."""
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    manifest, rows = read_training(SHIPPED)
    unknown = [
        replace(row, verdict="not judged", status="", judge_s=0.0)
        for row in rows
        if row.words < 60 and row.dtype == "float32"
    ]
    parts = [[row for row in unknown if half.has(row.full)][:3] for half in HALVES]
    few = [*parts[0], *parts[1]]
    few[0] = replace(few[0], loops=few[1].loops)
    known = replace(unknown[-1], verdict="correct", judge_s=1.5)
    out = tmp_path_factory.mktemp("data")
    write_rows(out, [*few, known], manifest.evaluation, Counter(wrong=2))
    return out


def test_rows_are_judged_in_parts_and_wrong_ones_are_left_out(data: Path, tmp_path: Path) -> None:
    given, rows = read_training(data)
    first, whole = tmp_path / "first", tmp_path / "whole"
    part = judge_training(data, first, RunPlan(shard=HALVES[0]))
    assert part.num_rows == 6 and part.verdicts == {"correct": 3, "not judged": 3}
    assert part.left_out["wrong"] == 3, "two were before"
    assert part.judged_from == given.file_hashes != part.file_hashes
    assert len(judging_run(first).records()) == 3

    made = judge_training(data, whole, RunPlan(parts=(first,)))
    _, kept = read_training(whole)
    assert made.verdicts == {"correct": 6} and made.evaluation == given.evaluation
    [wrong] = {row.full for row in rows} - {row.full for row in kept}
    texts = Counter(row.loops for row in rows)
    assert {row.full for row in rows if texts[row.loops] == 2} > {wrong}
    assert all(row.judge_s > 0 for row in kept)
    again = judge_training(first, tmp_path / "again")
    assert again.judged_from == (*given.file_hashes, *part.file_hashes)
    own = {row_key(row) for row in rows if row.verdict == "not judged"}
    assert set(judging_run(whole).records()) == own, "the row with a verdict is not judged again"

    # a kill in the middle of a record
    path = whole / VERDICTS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    with pytest.raises(InputError, match="add --resume"):
        judge_training(data, whole)
    stopped = judge_training(data, whole, RunPlan(resume=True), lambda: True)
    assert stopped.verdicts["not judged"] == 1
    assert judge_training(data, whole, RunPlan(resume=True)).verdicts == made.verdicts


def test_data_that_is_not_the_same_is_refused(data: Path, tmp_path: Path) -> None:
    manifest, rows = read_training(data)
    other, out, strange = tmp_path / "other", tmp_path / "out", tmp_path / "strange"
    write_rows(other, rows[1:], manifest.evaluation, Counter())
    judge_training(other, strange, is_over=lambda: True)
    with pytest.raises(InputError, match=r"strange: judges other data; it is no part of this run"):
        judge_training(data, out, RunPlan(parts=(strange,)))
    assert not out.exists()
    with pytest.raises(InputError, match=r"strange: judges other data; choose another --out"):
        judge_training(data, strange, RunPlan(resume=True))
    with pytest.raises(InputError, match="holds the data to judge; choose another --out"):
        judge_training(data, data, RunPlan(resume=True))
    assert read_training(data) == (manifest, rows)


def test_data_of_which_nothing_is_left_is_not_written(data: Path, tmp_path: Path) -> None:
    manifest, rows = read_training(data)
    wrong, out = tmp_path / "wrong", tmp_path / "out"
    broken = [row for row in rows if row.verdict == "not judged"][:1]
    write_rows(wrong, [replace(broken[0], loops="range t0 t0")], manifest.evaluation, Counter())
    with pytest.raises(InputError, match="finds all 1 rows wrong; nothing is left"):
        judge_training(wrong, out)
    assert not (out / "training.json").exists()
