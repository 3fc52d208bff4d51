"""Splits: the same for the same, apart by op sequence, and a leak is found and named."""

from dataclasses import replace
from pathlib import Path

import pytest

from passnet.data.dataset.splits import (
    Leak,
    RowKeys,
    SuiteKeys,
    check_leaks,
    leaks,
    num_near,
    read_split,
    side_of,
    split,
    write_split,
)
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import make_suite, read_suite_keys, write_suite
from passnet.judge.task import TaskGraph
from tests.data.dataset.rows import CHAIN, RELU
from tests.graph.programs import graph_of

NONE = SuiteKeys({}, {}, {})


def part(name: str, *ops: str, structure: str = "") -> RowKeys:
    return RowKeys(name, structure or "-".join(ops), ops)


PARTS = [part(f"r{number}", f"op{number // 2}", "b") for number in range(400)]


def test_a_split_is_the_same_for_the_same_and_near_its_share():
    sides, manifest = split(PARTS, 0.25, 0, NONE)
    assert split(PARTS[::-1], 0.25, 0, NONE)[0] == sides
    assert 30 < manifest.sequences["eval"] < 70
    assert manifest.rows["eval"] == 2 * manifest.sequences["eval"]
    assert manifest.rows["train"] + manifest.rows["eval"] == 400
    assert split(PARTS, 0.25, 1, NONE)[0] != sides


def test_the_side_of_a_row_does_not_depend_on_other_rows():
    sides, _ = split(PARTS, 0.25, 0, NONE)
    some, _ = split(PARTS[:100], 0.25, 0, NONE)
    assert all(sides[name] == side for name, side in some.items())
    more, _ = split(PARTS, 0.5, 0, NONE)
    assert all(more[name] == "eval" for name, side in sides.items() if side == "eval")


def test_sequences_of_a_suite_are_evaluation():
    suites = SuiteKeys({"s": "h"}, {("op0", "b"): "s"}, {})
    sides, manifest = split(PARTS, 0.0, 0, suites)
    assert [name for name, side in sides.items() if side == "eval"] == ["r0", "r1"]
    assert manifest.suites == {"s": "h"}
    assert side_of(("op0", "b"), 0.0, 0) == "train"


def test_a_shared_op_sequence_is_a_leak_with_the_rows_named():
    parts = [part("r1", "a", "b"), part("r2", "a", "b"), part("r3", "c")]
    sides = {"r1": "train", "r2": "eval", "r3": "train"}
    assert leaks(parts, sides, NONE) == [Leak("r1", "op sequence", "r2")]
    with pytest.raises(InputError, match=r"1 rows to train on leak .*: r1 \(op sequence of r2\)"):
        check_leaks(parts, sides, NONE)
    check_leaks(parts, {**sides, "r1": "eval"}, NONE)


def test_a_shared_structure_is_a_leak_whatever_the_op_sequence_says():
    parts = [part("r1", "a", structure="s"), part("r2", "b", structure="s")]
    assert leaks(parts, {"r1": "train", "r2": "eval"}, NONE) == [Leak("r1", "structure", "r2")]
    with pytest.raises(InputError, match="structure of r2"):
        check_leaks(parts, {"r1": "train", "r2": "eval"}, NONE)


def test_a_variant_apart_from_its_original_is_a_leak_either_way():
    parts = [part("r1", "a"), RowKeys("r2", "s2", ("b",), "r1"), RowKeys("r3", "s3", ("c",), "r1")]
    sides = {"r1": "train", "r2": "eval", "r3": "train"}
    assert leaks(parts, sides, NONE) == [Leak("r1", "variant", "r2"), Leak("r3", "variant", "r2")]
    other_way = {"r1": "eval", "r2": "train", "r3": "eval"}
    assert leaks(parts, other_way, NONE) == [Leak("r2", "variant", "r1")]
    assert not leaks(parts, dict.fromkeys(sides, "train"), NONE)


def test_a_split_made_without_a_suite_leaks_it():
    suites = SuiteKeys({"s": "h"}, {("op0", "b"): "s"}, {})
    sides, _ = split(PARTS, 0.0, 0, NONE)
    assert [leak.row for leak in leaks(PARTS, sides, suites)] == ["r0", "r1"]
    with pytest.raises(InputError, match="row r7 is in no part of the split"):
        leaks(PARTS, {name: side for name, side in sides.items() if name != "r7"}, NONE)


def test_sides_that_share_a_structure_are_not_made():
    parts = [replace(row, structure="same") for row in PARTS]
    with pytest.raises(InputError, match="rows to train on leak"):
        split(parts, 0.25, 0, NONE)


def test_parts_of_training_sequences_are_counted_not_refused():
    train = [("a", "b", "c"), ("c", "d")]
    assert num_near(train, [("a", "b"), ("b", "c"), ("a", "c"), ("c", "c"), ("c",)]) == 2
    sides = split([part("r1", "a", "b", "c"), part("r2", "a", "b")], 0.0, 0,
                  SuiteKeys({}, {("a", "b"): "s"}, {}))  # fmt: skip
    assert sides[1].near_sequences == 1


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share: float):
    with pytest.raises(InputError, match="give one from 0 to below 1"):
        split(PARTS, share, 0, NONE)


def test_no_rows_are_not_split():
    with pytest.raises(InputError, match="no rows to split"):
        split([], 0.1, 0, NONE)


def test_a_split_is_read_back(tmp_path: Path):
    hashed = [part(f"{number:02x}", f"op{number // 2}", "b") for number in range(400)]
    sides, manifest = split(hashed, 0.25, 0, NONE)
    stored = write_split(tmp_path / "split", sides, manifest)
    assert read_split(tmp_path / "split") == (stored, sides)
    (tmp_path / "split" / "split-000.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"not the file that split\.json describes"):
        read_split(tmp_path / "split")


def test_suites_give_their_sequences_and_structures(tmp_path: Path):
    suite = make_suite("own", [TaskGraph("t", "g", graph_of(RELU))])
    write_suite(tmp_path / "own.parquet", suite)
    keys = read_suite_keys([str(tmp_path / "own.parquet")] * 2)
    assert keys.hashes == {"own": suite.content_hash}
    assert keys.sequences == {("torch.relu", "operator.add"): "own"}
    assert keys.structures == {fingerprints(graph_of(RELU)).structure: "own"}
    (tmp_path / "deep").mkdir()
    second = make_suite("own", [TaskGraph("t", "g", graph_of(CHAIN))])
    write_suite(tmp_path / "deep" / "own.parquet", second)
    with pytest.raises(InputError, match="two suites are named own"):
        read_suite_keys([str(tmp_path / "own.parquet"), str(tmp_path / "deep" / "own.parquet")])
