"""A release: each part is a configuration that `datasets` reads, and its card says what it is."""

import json

import pytest
import yaml

from passnet.core.records.serialise import encode
from passnet.data.capture.store import GraphRow, GraphSource, write_set
from passnet.data.dataset.store import Occurrence, Provenance, row_of_graph, write_dataset
from passnet.errors import InputError
from recipes.publication import PublicationPlan, publish
from tests.data.mine.test_fusion import graph


def captured(full: str, *sources: GraphSource) -> GraphRow:
    return GraphRow(full, "l", full, "text", "[]", ("a",), "{}", "nlp", "t", sources)


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "data").mkdir()
    rows = [
        captured("x", GraphSource("timm/a", 0)),
        captured("y", GraphSource("timm/a", 0, True)),
        captured("z", GraphSource("timm/a", 0, True, "backward")),
    ]
    write_set(tmp_path / "graphs", rows, {"timm": ["1.0"]})
    target = graph("a = x + y\nb = torch.relu(a)\nreturn (b,)\n", x=(8, 16), y=(8, 16))
    places = (Occurrence("g", 0, 2),)
    where = Provenance(("fusible",), "", "", "cv", ("timm/a",), 1, 1, places)
    write_dataset(tmp_path / "data", [row_of_graph(target, where, "t")], {"timm": ["1.1"]})
    chats = tmp_path / "chats.jsonl"
    chat = {"messages": [{"role": "user", "content": "go\u2028"}], "score": 1.5}
    chats.write_bytes(encode(chat) + b"\n")
    return PublicationPlan(
        "small", "1.2.3", (tmp_path / "graphs",), tmp_path / "data", {}, ("demo-small",), (chats,)
    )


def test_every_configuration_is_read_by_its_name(parts, tmp_path):
    datasets = pytest.importorskip("datasets")
    out = tmp_path / "out"
    publish(parts, out)

    def load(config: str, split: str):
        return datasets.load_dataset(
            str(out), config, split=split, cache_dir=str(tmp_path / "cache")
        )

    for kind, full in (("inference", "x"), ("training", "y"), ("backward", "z")):
        assert load("graphs", kind)["full"] == [full]
    assert load("subgraphs", "train")["num_ops"] == [2]
    assert len(load("demo-small", "test")) == 14
    [attempt] = load("trajectories", "train")
    assert json.loads(attempt["messages"])[0]["content"] == "go\u2028" and attempt["score"] == 1.5


def test_the_card_names_kinds_versions_licences_and_how_to_cite(parts, tmp_path):
    out = tmp_path / "out"
    publish(parts, out)
    text = (out / "README.md").read_text()
    header = yaml.safe_load(text.split("---")[1])
    names = ["graphs", "subgraphs", "demo-small", "trajectories"]
    assert [config["config_name"] for config in header["configs"]] == names
    assert header["size_categories"] == ["n<1K"]
    assert "| timm | 1.0, 1.1 | Apache-2.0 |" in text
    assert "Datasheet" in text and "## How to cite" in text
    citation = yaml.safe_load((out / "CITATION.cff").read_text())
    assert citation["version"] == "1.2.3" and citation["authors"]


def test_what_cannot_be_published_is_named(parts, tmp_path):
    with pytest.raises(InputError, match="nothing to publish"):
        publish(PublicationPlan("n", "1"), tmp_path / "out")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(InputError, match="holds no attempt"):
        publish(PublicationPlan("n", "1", trajectories=(empty,)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
