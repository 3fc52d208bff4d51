"""Layouts of others: what is exported comes back equal, and what is imported goes out as it was."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest
import yaml

from passnet.data.dataset.query import Dataset
from passnet.data.dataset.store import Occurrence, SubgraphRow, main_dtype
from passnet.data.dataset.verification import verify
from passnet.errors import GraphError, InputError
from passnet.graph.text.files import GraphSample, find_graphs, read_sample, write_sample
from passnet_exchange.card import COLUMNS, CardFacts, card
from passnet_exchange.export import Exported, ExportPlan, Layout, export_dataset
from passnet_exchange.folders import FACTS_KEY, name_of, passnet_folder, plain_name
from passnet_exchange.importer import Imported, import_dataset
from passnet_exchange.origins import Origin, folder_of, read_origins, write_origins
from tests.data.dataset.rows import CHAIN, RELU, ROWS, TANH, in_order, write
from tests.graph.programs import graph_of


def export(folder: Path, out: Path, plan: ExportPlan) -> Exported:
    with Dataset(folder) as dataset:
        return export_dataset(dataset, out, plan)


def rows_of(folder: Path) -> list[SubgraphRow]:
    with Dataset(folder) as dataset:
        return list(dataset.rows())


@pytest.mark.parametrize("layout", get_args(Layout))
def test_what_is_exported_is_imported_as_the_same_rows(tmp_path: Path, layout: Layout):
    folder = write(tmp_path / "data")
    exported = export(folder, tmp_path / "out", ExportPlan(layout))
    assert exported.num_rows == 6
    imported = import_dataset(tmp_path / "out", tmp_path / "back", strict=True)
    assert rows_of(tmp_path / "back") == in_order(ROWS) and not imported.left_out
    assert verify(tmp_path / "back").ok
    export(tmp_path / "back", tmp_path / "again", ExportPlan(layout))
    assert files_of(tmp_path / "again") == files_of(tmp_path / "out")


def files_of(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_only_the_rows_wanted_are_exported(tmp_path: Path):
    folder = write(tmp_path / "data")
    exported = export(folder, tmp_path / "out", ExportPlan("graphnet", "domain = 'audio'"))
    assert exported == Exported(1, 1)
    with pytest.raises(InputError, match="has no rows with num_ops > 99, nothing to export"):
        export(folder, tmp_path / "none", ExportPlan("hf", "num_ops > 99"))
    assert not (tmp_path / "none").exists()


def test_a_graph_directory_says_what_graphnet_asks_for(tmp_path: Path):
    export(write(tmp_path / "data"), tmp_path / "out", ExportPlan("graphnet"))
    name = f"lib/one_start7_end8_{ROWS[3].full[:16]}"
    sample = read_sample(tmp_path / "out" / name)
    assert sample.info["framework"] == "torch" and sample.info["num_devices_required"] == 1
    assert sample.graph_hash == ROWS[3].full and sample.sources == {"2" * 64: [[7, 8]]}
    assert {path.name for path in (tmp_path / "out" / name).iterdir()} == {
        "model.py", "weight_meta.py", "input_meta.py", "input_tensor_constraints.py",
        "graph_net.json", "graph_hash.txt", "subgraph_sources.json",
    }  # fmt: skip


def test_a_directory_of_several_nets_names_no_range_of_one():
    row = ROWS[0]
    assert row.nets == ("lib/one", "lib/two") and row.places
    assert name_of(row) == f"one_{row.full[:16]}"
    path = passnet_folder(row, "set", "fusible_subgraphs")
    assert path.parts[-5:] == ("samples", "lib", "one", "_decomposed", name_of(row))


def test_a_task_is_the_graphs_of_one_op_sequence_and_type(tmp_path: Path):
    exported = export(write(tmp_path / "data"), tmp_path / "out", ExportPlan("passnet", name="set"))
    assert (exported.num_written, exported.num_tasks) == (7, 4)
    lists = sorted((tmp_path / "out").glob("samples/set/*/??/??/*/graph_list.txt"))
    assert len(lists) == 4
    for path in lists:
        task = path.parent
        ids = (task / "sample_uids.txt").read_text().split(",")
        name = hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
        assert (task.name, task.parent.name, task.parent.parent.name) == (
            name, name[2:4], name[:2],
        )  # fmt: skip
        assert (task / "pass_dir").is_dir() and (task / "graphs").is_symlink()
        graphs = [read_sample(task / line).graph for line in path.read_text().splitlines()]
        assert len(graphs) == len(ids)
        assert len({tuple(op.target for op in graph.program.ops) for graph in graphs}) == 1
    [fusible] = [path for path in lists if "fusible_subgraphs" in path.parts]
    assert "/fusible_subgraphs/bfloat16/" in fusible.read_text()


def test_a_split_becomes_files_of_their_own_for_hugging_face(tmp_path: Path):
    sides = {row.full: "eval" if row.num_ops == 1 else "train" for row in ROWS}
    folder = write(tmp_path / "data")
    export(folder, tmp_path / "out", ExportPlan("hf", sides=sides))
    assert {path.name for path in (tmp_path / "out" / "data").iterdir()} == {
        "train-00000-of-00001.parquet",
        "eval-00000-of-00001.parquet",
    }
    assert pq.read_metadata(tmp_path / "out/data/eval-00000-of-00001.parquet").num_rows == 2
    text = (tmp_path / "out" / "README.md").read_text()
    assert "  - split: eval\n    path: data/eval-*\n" in text and "share no op sequence" in text
    with pytest.raises(InputError, match="is in no part of the split"):
        export(folder, tmp_path / "other", ExportPlan("hf", sides={ROWS[0].full: "train"}))
    assert not (tmp_path / "other").exists()


def test_datasets_reads_the_layout_for_hugging_face(tmp_path: Path):
    pytest.importorskip("datasets", reason="datasets is not installed (pip install passnet[dev])")
    sides = {row.full: "eval" if row.num_ops == 1 else "train" for row in ROWS}
    export(write(tmp_path / "data"), tmp_path / "out", ExportPlan("hf", sides=sides))
    script = (
        "import json, sys, datasets\n"
        "found = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])\n"
        "print(json.dumps({name: part[:] for name, part in found.items()}))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "out"), str(tmp_path / "cache")],
        env={**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1",
             "HF_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "Ignoring" not in process.stderr and "malformed" not in process.stderr
    splits = json.loads(process.stdout)
    with Dataset(tmp_path / "data") as dataset:
        assert splits["eval"] == dataset.table("num_ops = 1").to_pydict()
        assert splits["train"] == dataset.table("num_ops > 1").to_pydict()


def test_the_card_tells_of_every_column_and_names_the_size():
    assert tuple(COLUMNS) == tuple(SubgraphRow.__slots__)
    counts = {"train": 1_200, "eval": 300}
    text = card(CardFacts("n", counts, {}, {}, {}, 7, 9, {"timm": ["1.0"]}, "0.1", "mit"))
    assert "- 1K<n<10K" in text and "1,500 computation graphs of 7 op sequences" in text
    assert "timm 1.0" in text


def test_the_header_of_a_card_holds_any_name_as_a_text():
    name, licence = "subgraphs: v2 [x]\x85\U0001f600", "mit\nextra: <b>"
    text = card(CardFacts(name, {"train": 1}, {}, {"<b>": 1}, {}, 7, 9, {}, "0.1", licence))
    header = yaml.safe_load(text.split("---")[1])
    assert header["pretty_name"] == "subgraphs: v2 [x]\\u0085\U0001f600"
    assert header["license"] == licence and "extra" not in header
    assert "<b>" not in text.split("---", 2)[2]


def foreign(folder: Path, name: str, **changes) -> GraphSample:
    """A directory as others make it."""
    sample = GraphSample(graph_of(RELU), {"framework": "torch", "model_name": "net"}, "c = 1\n")
    sample = replace(sample, **changes)
    write_sample(folder / name, sample)
    return sample


def test_a_directory_from_elsewhere_is_read_for_what_its_names_say(tmp_path: Path):
    name = "graphs/s/fusible_subgraphs/float32/0/samples/timm/net/_decomposed/net_start3_end5_0"
    info = {"model_name": "net_start3_end5_0", "heuristic_tag": "computer_vision"}
    foreign(tmp_path / "in", name, info=info)
    foreign(tmp_path / "in", name.replace("fusible", "typical"), info=info)
    foreign(tmp_path / "in", "lib/whole", graph=graph_of(CHAIN), info={"heuristic_tag": "nlp"})
    sources = {"p": [[4, 5], [1, 2], [4, 5]], "o": [[0, 1]]}
    foreign(tmp_path / "in", "lib/part", graph=graph_of(TANH), sources=sources)
    import_dataset(tmp_path / "in", tmp_path / "out")
    rows = {row.op_sequence: row for row in rows_of(tmp_path / "out")}
    part = rows["torch.relu", "operator.add"]
    assert (part.kinds, part.nets, part.domain) == (("classical", "fusible"), ("timm/net",), "cv")
    assert part.places == (Occurrence("timm/net", 3, 5),) and part.num_places == 1
    whole = rows["torch.tanh", "torch.relu", "operator.add"]
    assert (whole.kinds, whole.nets, whole.domain) == ((), ("lib/whole",), "nlp")
    assert whole.places == (Occurrence(whole.full, 0, 3),)
    several = rows["torch.tanh",]
    assert several.places == (Occurrence("o", 0, 1), Occurrence("p", 1, 2), Occurrence("p", 4, 5))
    assert (several.num_graphs, several.num_places) == (2, 3)


def test_directories_of_one_graph_keep_what_they_differ_in(tmp_path: Path):
    spec = graph_of(RELU).tensors
    renamed = replace(
        graph_of(RELU), tensors=(replace(spec[0], mean=3.0, keys=(*spec[0].keys,)), spec[1])
    )
    samples = {
        "lib/one": foreign(tmp_path / "in", "lib/one"),
        "lib/two": foreign(tmp_path / "in", "lib/two", graph=renamed, graph_hash="f" * 64),
    }
    imported = import_dataset(tmp_path / "in", tmp_path / "out")
    assert imported.num_read == 2 and imported.dataset.num_subgraphs == 1
    export(tmp_path / "out", tmp_path / "back", ExportPlan("graphnet"))
    exported = {str(path.relative_to(tmp_path / "back")): read_sample(path)
             for path in find_graphs(tmp_path / "back")}  # fmt: skip
    assert exported == samples
    export(tmp_path / "out", tmp_path / "tasks", ExportPlan("passnet"))
    assert sorted(read_sample(path) == samples["lib/one"]
                  for path in find_graphs(tmp_path / "tasks")) == [False, True]  # fmt: skip


def check_corpus(corpus: Path, out: Path) -> Imported:
    """Import and export of graphs from elsewhere gives equal directories."""
    imported = import_dataset(corpus, out / "data", strict=True)
    export(out / "data", out / "back", ExportPlan("graphnet"))
    paths = [path.relative_to(corpus) for path in find_graphs(corpus)]
    assert paths == [path.relative_to(out / "back") for path in find_graphs(out / "back")]
    for path in paths:
        assert read_sample(out / "back" / path) == read_sample(corpus / path)
    assert imported.num_read == len(paths)
    return imported


def test_the_public_subgraphs_go_through_unchanged(passnet_samples: Path, tmp_path: Path):
    assert check_corpus(passnet_samples, tmp_path).num_read == 5
    assert verify(tmp_path / "data").ok


def test_some_public_graphs_go_through_unchanged(graphnet: Path, tmp_path: Path):
    paths = sorted(find_graphs(graphnet), key=lambda path: (path / "model.py").stat().st_size)
    for path in paths[:200:20]:
        shutil.copytree(path, tmp_path / "in" / path.relative_to(graphnet))
    assert check_corpus(tmp_path / "in", tmp_path).num_read == 10


@pytest.mark.slow
def test_all_public_graphs_go_through_unchanged(graphnet: Path, tmp_path: Path):
    assert check_corpus(graphnet, tmp_path).num_read == 375


def test_a_directory_that_cannot_be_read_is_left_out_with_its_reason(tmp_path: Path):
    foreign(tmp_path / "in", "lib/good")
    foreign(tmp_path / "in", "lib/wrong")
    path = tmp_path / "in/lib/wrong/model.py"
    path.write_text(path.read_text().replace("torch.relu", "torch.nonsense"))
    imported = import_dataset(tmp_path / "in", tmp_path / "out")
    assert imported.num_read == 1 and imported.left_out[0].path == "lib/wrong"
    assert "model.py:6: torch.nonsense is not on the list" in imported.left_out[0].reason
    with pytest.raises(GraphError, match="torch.nonsense is not on the list"):
        import_dataset(tmp_path / "in", tmp_path / "strict", strict=True)
    shutil.rmtree(tmp_path / "in/lib/good")
    with pytest.raises(InputError, match="holds no graph that can be read; .*nonsense"):
        import_dataset(tmp_path / "in", tmp_path / "strict")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


FACTS = {"schema_version": 1, "kinds": [], "variant": "", "original": "", "domain": "cv",
         "nets": ["a/b"], "num_graphs": 1, "num_places": 1, "places": []}  # fmt: skip
ODD: dict[str, tuple[dict, dict | None]] = {
    "a surrogate in the net's name": ({"model_name": "\ud800"}, None),
    "a surrogate in the info": ({"remark": ["\ud800"]}, {"\udfff": [[0, 1]]}),
    "a surrogate in the sources": ({}, {"\ud800": [[0, 1]]}),
    "an op of 100 bits": ({}, {"g": [[0, 2**100]]}),
    "an op of 64 bits": ({}, {"g": [[0, 2**63]]}),
    "an op below zero": ({}, {"g": [[-2, -1]]}),
    "a range without ops": ({}, {"g": [[5, 5]]}),
    "a count of 70 bits": ({FACTS_KEY: {**FACTS, "num_places": 2**70}}, None),
    "a count below zero": ({FACTS_KEY: {**FACTS, "num_graphs": -1}}, None),
}


def test_a_directory_that_cannot_be_stored_is_left_out_and_ends_no_import(tmp_path: Path):
    foreign(tmp_path / "in", "lib/good")
    for claim, (info, sources) in ODD.items():
        foreign(tmp_path / "in", f"odd/{claim}", info=info, sources=sources)
    foreign(tmp_path / "in", "odd/\udcff")
    imported = import_dataset(tmp_path / "in", tmp_path / "out")
    left_out = {graph.path: graph.reason for graph in imported.left_out}
    assert left_out.keys() == {"odd/\\udcff", *(f"odd/{claim}" for claim in ODD)}
    [row] = rows_of(tmp_path / "out")
    assert row.nets == ("lib/net",) and verify(tmp_path / "out").ok


def test_a_range_of_too_many_digits_is_part_of_a_net_s_name(tmp_path: Path):
    name = f"net_start{'1' * 5000}_end2"
    foreign(tmp_path / "in", "lib/long", info={"model_name": name})
    import_dataset(tmp_path / "in", tmp_path / "out", strict=True)
    [row] = rows_of(tmp_path / "out")
    assert row.nets == (f"lib/{name}",) and row.places == (Occurrence(row.full, 0, row.num_ops),)


def test_an_empty_folder_is_refused(tmp_path: Path):
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="holds no graph"):
        import_dataset(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_empty_is_not_written_to(tmp_path: Path):
    folder = write(tmp_path / "data")
    before = files_of(tmp_path)
    with pytest.raises(InputError, match="data: already exists; remove it"):
        export(folder, folder, ExportPlan("graphnet"))
    with pytest.raises(InputError, match="a file stands where a folder is needed"):
        export(folder, folder / "dataset.json" / "x", ExportPlan("graphnet"))
    assert files_of(tmp_path) == before


def test_what_fails_half_way_leaves_nothing(tmp_path: Path):
    rows = [*ROWS[:-1], replace(ROWS[-1], tensors="[]")]
    folder = write(tmp_path / "data", rows)
    for layout in ("graphnet", "passnet"):
        with pytest.raises(InputError, match="the arguments of forward and their specs differ"):
            export(folder, tmp_path / "out", ExportPlan(layout))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("facts", [{"kinds": 3}, [], {"schema_version": 99}])
def test_facts_that_are_none_are_refused(tmp_path: Path, facts: object):
    export(write(tmp_path / "data", ROWS[:1]), tmp_path / "out", ExportPlan("graphnet"))
    [path] = (tmp_path / "out").rglob("graph_net.json")
    info = json.loads(path.read_text())
    info[FACTS_KEY] = {**info[FACTS_KEY], **facts} if isinstance(facts, dict) else facts
    path.write_text(json.dumps(info))
    with pytest.raises(InputError, match=r"passnet in graph_net.json|schema version 99"):
        import_dataset(tmp_path / "out", tmp_path / "back", strict=True)


def test_copies_that_state_different_places_are_left_out(tmp_path: Path):
    export(write(tmp_path / "data", ROWS[:1]), tmp_path / "out", ExportPlan("passnet"))
    first = next((tmp_path / "out").rglob("graph_net.json"))
    info = json.loads(first.read_text())
    info[FACTS_KEY]["num_places"] = 50
    first.write_text(json.dumps(info))
    with pytest.raises(InputError, match="states different places"):
        import_dataset(tmp_path / "out", tmp_path / "back", strict=True)
    imported = import_dataset(tmp_path / "out", tmp_path / "back")
    assert imported.num_read and [graph.reason for graph in imported.left_out] == [
        f"another directory of graph {ROWS[0].full[:16]} states different places"
    ]
    assert len(rows_of(tmp_path / "back")) == 1


def test_rows_that_stand_in_two_files_are_refused(tmp_path: Path):
    export(write(tmp_path / "data"), tmp_path / "out", ExportPlan("hf"))
    data = tmp_path / "out" / "data"
    shutil.copy(data / "train-00000-of-00001.parquet", data / "train-00001-of-00002.parquet")
    with pytest.raises(InputError, match="6 rows stand there twice"):
        import_dataset(tmp_path / "out", tmp_path / "back")


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b", "", "a\0b"])
def test_an_origin_cannot_leave_the_folder(tmp_path: Path, path: str):
    origin = Origin(ROWS[0].full, path, "{}", "", "", "", "", "")
    with pytest.raises(InputError, match="not a path within a folder"):
        folder_of(origin)
    folder = write(tmp_path / "data")
    write_origins(folder, [origin])
    with pytest.raises(InputError, match="not a path within a folder"):
        export(folder, tmp_path / "out", ExportPlan("graphnet"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_names_of_folders_are_plain(tmp_path: Path):
    row = replace(ROWS[0], nets=("../..//../x",), dtype="../../y", domain="cv")
    assert main_dtype(graph_of(RELU).tensors) != row.dtype
    folder = write(tmp_path / "data", [row])
    for layout in ("graphnet", "passnet"):
        export(folder, tmp_path / layout, ExportPlan(layout))
        assert len(list(find_graphs(tmp_path / layout))) == (2 if layout == "passnet" else 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "graphnet", "passnet"]
    assert plain_name("..") == "" and plain_name("a/b") == "a_b"


def test_origins_are_read_for_the_rows_wanted(tmp_path: Path):
    origins = [Origin(name, "p", "{}", "", "", "", "", "") for name in ("a", "b")]
    tmp_path.joinpath("d").mkdir()
    write_origins(tmp_path / "d", origins)
    assert read_origins(tmp_path / "d", ["b", "c"]) == {"b": [origins[1]]}
    assert read_origins(tmp_path, ["b"]) == {}


@pytest.mark.parametrize("layout", ["graphnet", "passnet"])
def test_a_row_whose_fingerprint_is_no_hash_is_refused(layout: Layout, tmp_path: Path):
    folder = write(tmp_path / "data", [replace(ROWS[0], full="/../../../../up")])
    with pytest.raises(InputError, match=r"full is '/\.\./\.\./\.\./\.\./up', and no hash"):
        export(folder, tmp_path / "a" / "out", ExportPlan(layout))
    assert not list(tmp_path.rglob("model.py"))


@pytest.mark.parametrize("name", ["../../../up", "/tmp/up", "a/../../.."])
def test_an_export_under_a_name_that_leaves_its_folder_is_refused(name: str, tmp_path: Path):
    folder = write(tmp_path / "data")
    with pytest.raises(InputError, match="is no name of a file or folder within"):
        export(folder, tmp_path / "out", ExportPlan("passnet", name=name))
    assert not list(tmp_path.rglob("model.py"))
