import http.server
import importlib.util
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from passnet.data.capture.catalog import hub
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.capture.weights import FakeWeights
from passnet.errors import InputError
from tests.http_server import serving

pytest.importorskip("transformers")
if importlib.util.find_spec("torchvision"):
    import_torchvision()
pytest.importorskip("timm")

COMMIT = "0123456789abcdef0123456789abcdef01234567"

BERT = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 6,
    "vocab_size": 500,
}
CONFIGS = {
    "acme/small-bert": BERT,
    "acme/headless-bert": BERT | {"architectures": None},
    "acme/native-bert": BERT | {"auto_map": {"AutoModel": "modeling_own.OwnModel"}},
    "acme/own-code": {"model_type": "own", "auto_map": {"AutoModel": "modeling_own.OwnModel"}},
    "acme/unheard-of": {"model_type": "unheard-of", "architectures": ["UnheardOfModel"]},
    "acme/untyped": {"hidden_size": 4},
    "timm/resnet10t.test": {
        "architecture": "resnet10t",
        "num_classes": 7,
        "pretrained_cfg": {"input_size": [3, 96, 96]},
    },
    "timm/dropping": {"architecture": "resnet10t", "model_args": {"drop_rate": 0.25}},
    "timm/reads-a-file": {
        "architecture": "resnet10t",
        "model_args": {"checkpoint_path": "/home/me/private.pth"},
    },
    "timm/odd": {"architecture": "resnet10t", "model_args": {"pretrained_cfg": {"file": "x"}}},
    "timm/unheard-of": {"architecture": "unheard_of_net"},
    "acme/no-config": None,
}


@dataclass
class Hub:
    endpoint: str
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Hub]:
    """The part of the hub that serves files, with every request noted."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake_hub.requests.append(self.path)
            repository, _, file = self.path.lstrip("/").partition("/resolve/main/")
            if repository not in CONFIGS:
                self.refuse("RepoNotFound")
            elif file != "config.json" or CONFIGS[repository] is None:
                self.refuse("EntryNotFound")
            else:
                self.give(json.dumps(CONFIGS[repository]).encode())

        do_HEAD = do_GET

        def refuse(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def give(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{abs(hash(content)):040x}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with serving(Handler) as address:
        fake_hub = Hub(address)
        monkeypatch.setenv("HF_ENDPOINT", fake_hub.endpoint)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        yield fake_hub


def test_a_bert_is_built_as_published(server):
    with FakeWeights():
        net = hub.build("acme/small-bert")
    assert type(net.module).__name__ == "BertForMaskedLM"
    assert net.module.config.hidden_size == 48
    assert len(net.module.bert.encoder.layer) == 6
    assert (net.domain, net.task, net.changes) == ("nlp", "fill-mask", ())
    assert int(net.kwargs["input_ids"].value.max()) < 500
    assert net.kwargs["input_ids"].axes == ("batch", "sequence")
    assert not net.module.training


def test_depth_is_reduced_when_asked(server):
    with FakeWeights():
        net = hub.build("acme/small-bert", reduce_layers=True)
    assert len(net.module.bert.encoder.layer) == 4
    assert net.changes == ("num_hidden_layers 6 -> 4",)


def test_without_architectures_the_base_net_is_built(server):
    with FakeWeights():
        assert type(hub.build("acme/headless-bert").module).__name__ == "BertModel"


def test_a_timm_repository_is_built_by_timm(server):
    with FakeWeights():
        net = hub.build("timm/resnet10t.test")
    assert type(net.module).__name__ == "ResNet"
    assert net.module.num_classes == 7
    assert tuple(net.args[0].value.shape) == (1, 3, 96, 96)
    assert net.domain == "cv"


def test_settings_of_an_architecture_are_taken_from_its_repository(server):
    with FakeWeights():
        assert hub.build("timm/dropping").module.drop_rate == 0.25


def test_only_configurations_are_asked_for(server):
    with FakeWeights():
        for repository in ("acme/small-bert", "timm/resnet10t.test", "acme/native-bert"):
            hub.build(repository)
    assert server.requests
    assert all(path.endswith("/resolve/main/config.json") for path in server.requests)


@pytest.mark.parametrize(
    ("repository", "message"),
    [
        ("acme/nowhere", "no repository 'acme/nowhere'"),
        ("acme/no-config", "has no config.json"),
        ("acme/own-code", "code of its own"),
        ("acme/unheard-of", "model_type 'unheard-of'"),
        ("acme/untyped", "model_type None"),
        ("timm/reads-a-file", "has checkpoint_path in model_args, and resnet10t has no such"),
        ("timm/odd", "has pretrained_cfg in model_args"),
        ("timm/unheard-of", "architecture 'unheard_of_net'"),
        ("not/a/name", "give owner/name"),
    ],
)
def test_what_cannot_be_built_says_why(server, repository, message):
    with pytest.raises(InputError, match=message):
        hub.build(repository)
    assert all(path.endswith("/resolve/main/config.json") for path in server.requests)


@pytest.mark.slow
def test_a_server_that_is_down_is_named(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=f"cannot be fetched from {endpoint}"):
        hub.build("acme/small-bert")


def test_a_list_of_repositories_is_read(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# ours\nacme/one\n\nacme/two  # the larger\nacme/one\n")
    assert hub.repositories(str(path)) == ["acme/one", "acme/two"]
    assert hub.repositories("acme/three") == ["acme/three"]
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="lists no repository"):
        hub.repositories(str(path))
