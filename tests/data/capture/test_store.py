"""Captured graphs on disk: each once, whatever the order; a damaged file is named."""

import random
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from passnet.data.capture.store import (
    GRAPHS,
    MANIFEST_FILE,
    GraphRow,
    GraphSource,
    merge,
    read_set,
)
from passnet.errors import InputError


def row(full, *entries, structure="s"):
    sources = tuple(GraphSource(entry, 0) for entry in entries)
    return GraphRow(
        full, "l", structure, f"text {full}", "[]", ("a", "b"), "{}", "cv", "t", sources
    )


def files(folder, parts):
    folder.mkdir()
    paths = []
    for number, rows in enumerate(parts):
        paths.append(folder / f"{number}.parquet")
        GRAPHS.write(paths[-1], rows)
    return paths


def test_rows_come_back_as_they_were(tmp_path):
    rows = [row("x", "n/1", "n/2"), row("y", "n/3")]
    GRAPHS.write(tmp_path / "a.parquet", rows)
    assert list(GRAPHS.read(tmp_path / "a.parquet")) == rows


def test_a_graph_without_a_source_is_refused(tmp_path):
    with pytest.raises(InputError, match="graph x: names no source; capture it again"):
        row("x")
    GRAPHS.write(tmp_path / "a.parquet", [row("x", "n/1")])
    table = pq.read_table(tmp_path / "a.parquet")
    column = table.schema.get_field_index("sources")
    table = table.set_column(column, table.schema.field(column), [["[]"]])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="names no source"):
        list(GRAPHS.read(tmp_path / "a.parquet"))


def test_a_graph_is_kept_once_with_all_its_sources(tmp_path):
    paths = files(tmp_path / "in", [[row("x", "n/2"), row("y", "n/2")], [row("x", "n/1")]])
    manifest = merge(paths, tmp_path, {"timm": ["1"]})
    assert (manifest.num_graphs, manifest.num_sources, manifest.num_ops) == (2, 3, 4)
    [first] = [row for row in GRAPHS.read(tmp_path / "graphs-000.parquet") if row.full == "x"]
    assert [source.entry for source in first.sources] == ["n/1", "n/2"]
    assert read_set(tmp_path)[0] == manifest


def test_the_order_of_files_makes_no_difference(tmp_path):
    parts = [[row(str(k), f"n/{j}") for k in range(j, j + 3)] for j in range(6)]
    first = merge(files(tmp_path / "one", parts), tmp_path / "one", {})
    random.Random(0).shuffle(parts)
    second = merge(files(tmp_path / "two", parts), tmp_path / "two", {})
    assert first == second


def test_merging_merged_sets_gives_the_same_set(tmp_path):
    parts = [[row(str(k), f"n/{j}") for k in range(j, j + 3)] for j in range(4)]
    paths = files(tmp_path / "in", parts)
    whole = merge(paths, tmp_path / "in", {})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    merge(paths[:2], tmp_path / "a", {})
    merge(paths[2:], tmp_path / "b", {})
    halves = [tmp_path / name / "graphs-000.parquet" for name in "ab"]
    assert merge(halves, tmp_path, {}).shards == whole.shards


def test_shards_of_a_larger_set_before_are_removed(tmp_path):
    (tmp_path / "graphs-007.parquet").write_bytes(b"old")
    merge([], tmp_path, {})
    assert not (tmp_path / "graphs-007.parquet").exists()


def test_a_file_that_is_none_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match=r"a\.parquet: not a Parquet file of captured graphs"):
        list(GRAPHS.read(path))


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    GRAPHS.write(path, [row("x", "n/1")])
    table = pq.read_table(path).replace_schema_metadata({b"passnet_schema_version": b"99"})
    pq.write_table(table, path)
    with pytest.raises(InputError, match="schema version 99"):
        list(GRAPHS.read(path))


def test_a_shard_that_was_changed_is_named(tmp_path):
    merge(files(tmp_path / "in", [[row("x", "n/1")]]), tmp_path, {})
    shard = tmp_path / "graphs-000.parquet"
    shard.write_bytes(shard.read_bytes() + b"\0")
    with pytest.raises(InputError, match=MANIFEST_FILE):
        read_set(tmp_path)
    shard.unlink()
    with pytest.raises(InputError, match="missing"):
        read_set(tmp_path)


def test_a_graph_is_of_the_first_of_the_kinds_that_it_is_found_as():
    training = GraphSource("n/1", 0, True)
    backward = GraphSource("n/1", 0, True, "backward")
    assert (training.kind, backward.kind, GraphSource("n/1", 0).kind) == (
        "training",
        "backward",
        "inference",
    )
    both = row("x", "n/1")
    assert replace(both, sources=(training, *both.sources)).kind == "inference"
    assert replace(both, sources=(backward, training)).kind == "training"


def test_a_manifest_counts_the_kinds(tmp_path):
    rows = [
        row("x", "n/1"),
        replace(row("y", "n/1"), sources=(GraphSource("n/1", 0, True, "backward"),)),
    ]
    paths = files(tmp_path / "in", [rows])
    assert merge(paths, tmp_path, {}).kinds == {"backward": 1, "inference": 1}
