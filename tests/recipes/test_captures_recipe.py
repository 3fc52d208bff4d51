"""The recipe of the captured graphs: what it captures, and how it adds to sets."""

from dataclasses import replace

from passnet.data.capture.catalog import HUB, libraries
from passnet.data.capture.store import GRAPHS, GraphRow, GraphSource, read_set
from recipes.captures import MERGE, REPACK, add_rows, merge_kinds, repack, selected
from tests.data.capture.test_store import row


def rows_of(folder):
    return [row for file in read_set(folder)[1] for row in GRAPHS.read(file)]


def test_without_names_all_libraries_but_the_hub_are_captured():
    assert selected([]) == [name for name in libraries() if name != HUB]
    assert selected(["zuko"]) == ["zuko"]
    assert selected([MERGE]) == selected([REPACK]) == []


def test_new_graphs_go_into_a_further_shard_and_old_files_stay(tmp_path):
    old = [row("x", "n/1"), row("y", "n/2", structure="t")]
    first = add_rows(tmp_path, old, {"timm": ["1"]})
    content = (tmp_path / "graphs-000.parquet").read_bytes()
    new = [row("z", "n/3", "n/4")]
    manifest = add_rows(tmp_path, new, {"timm": ["2"], "zuko": ["1"]})
    assert (tmp_path / "graphs-000.parquet").read_bytes() == content
    assert manifest.shards[:1] == first.shards and len(manifest.shards) == 2
    assert (manifest.num_graphs, manifest.num_structures, manifest.num_sources) == (3, 2, 4)
    assert (manifest.num_ops, manifest.kinds) == (6, {"inference": 3})
    assert manifest.versions == {"timm": ["1", "2"], "zuko": ["1"]}
    assert rows_of(tmp_path) == old + new and read_set(tmp_path)[0] == manifest
    assert add_rows(tmp_path, [], {}) == manifest


def test_only_unknown_graphs_are_added_each_to_the_set_of_its_kind(tmp_path):
    sets = tmp_path / "captures"
    used, trained = row("x", "n/1"), _trained("y", "n/1")
    for number, rows in enumerate(([used, trained], [used, row("z", "n/2"), trained])):
        run = tmp_path / f"run-{number}"
        add_rows(run, rows, {"timm": [str(number)]})
        merge_kinds([run], sets)
    assert [row.full for row in rows_of(sets)] == ["x", "z"]
    assert rows_of(sets / "training") == [trained]
    assert len(read_set(sets)[0].shards) == 2 and len(read_set(sets / "training")[0].shards) == 1


def test_a_set_written_anew_has_the_same_graphs_in_one_file(tmp_path):
    rows = [row("x", "n/2"), row("y", "n/1", structure="t")]
    add_rows(tmp_path, rows[:1], {"timm": ["1"]})
    before = add_rows(tmp_path, rows[1:], {"timm": ["2"]})
    after = repack(tmp_path)
    assert replace(after, shards=()) == replace(before, shards=())
    assert rows_of(tmp_path) == [rows[1], rows[0]] and len(after.shards) == 1
    assert len(list(tmp_path.glob("graphs-*"))) == 1


def _trained(full: str, entry: str) -> GraphRow:
    return replace(row(full, entry), sources=(GraphSource(entry, 0, train=True),))
