"""The backend of docs/backends.md, as a package of its own."""

import re
import sys
from pathlib import Path

import pytest
import torch

import passnet
from passnet.core.records.serialise import read_json
from passnet.errors import InputError
from passnet.optimizer.backends.registry import BACKENDS, all_backends
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.record import RECORD_FILE, OptimizedRecord
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "backends.md"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package with the backend of the page."""
    text = PAGE.read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [point] = re.findall(r"interpreter = \"(.*)\"", text)
    home = tmp_path / "my_package"
    home.mkdir()
    (home / "__init__.py").touch()
    (home / "interpreter.py").write_text(code, encoding="utf-8")
    info = tmp_path / "my_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[passnet.backends]\ninterpreter = {point}\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield home
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


def test_the_backend_of_the_page_is_found_built_and_loaded(package: Path, tmp_path: Path) -> None:
    assert [*all_backends()] == [*BACKENDS, "interpreter"]
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval(), torch.randn(2, 4)
    out = tmp_path / "out"
    passnet.optimize(net, x, backends=("interpreter",), seconds=0.02, out=out)
    [form] = read_json(out / RECORD_FILE, OptimizedRecord).forms
    assert (form.engines[1].engine, form.engines[1].status) == ("interpreter", "ok")
    home = tmp_path / "built"
    home.mkdir()
    backend, call = all_backends()["interpreter"], NetCall(net, (x,), {})
    backend.build(call, home, "interpreter")
    with torch.no_grad():
        [output] = backend.load(call, home, "interpreter").run([x])
        assert torch.equal(output, net(x))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("BACKENDS = {'eager': 1}", "'eager' is taken, or is no Backend"),
        ("BACKENDS = {'mine': 1}", "'mine' is taken, or is no Backend"),
        ("import no_such_module", "the backends of my_package.interpreter:BACKENDS: "),
    ],
)
def test_a_package_whose_backends_cannot_be_used_is_one_sentence(
    package: Path, code: str, says: str
) -> None:
    (package / "interpreter.py").write_text(code, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(says)):
        all_backends()
