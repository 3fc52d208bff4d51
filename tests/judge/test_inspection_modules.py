"""The modules of a pass folder are all inspected, however they reach each other."""

import sys
from pathlib import Path

import pytest

from passnet.errors import PassFolderError
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import OPEN, STRICT
from passnet.passes.folder import inspect_folder
from tests.judge.inspection_folder import EVASION, NETWORK, OP, PASS, body, findings, kinds
from tests.passes.graphs import write_folder

IMPORTS = {
    "from pass_dir.kernel import run": "run(x)",
    "import pass_dir.kernel as k": "k.run(x)",
    "import pass_dir.kernel": "pass_dir.kernel.run(x)",
    "from pass_dir import kernel": "kernel.run(x)",
    "from . import kernel": "kernel.run(x)",
    "from .kernel import run as go": "go(x)",
    "from .kernel import *": "run(x)",
    "from pass_dir.middle import run": "run(x)",
    "from .inner.deep import run": "run(x)",
}
MIDDLE = "from .kernel import run\n"
DEEP = "from ..kernel import run\n"
KERNEL = "import torch\ndef run(x):\n    return torch.relu(x)\n"


@pytest.mark.parametrize("statement", IMPORTS)
def test_a_module_is_inspected_however_it_is_imported(statement: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.py").write_text(DEEP)
    source = body(IMPORTS[statement], statement)
    found = findings(tmp_path, source, STRICT, kernel=KERNEL, middle=MIDDLE)
    assert [(item.name, item.place) for item in found] == [("torch_fallback", "kernel.py:3")]
    assert found[0].evidence == "torch.relu: `return torch.relu(x)`"


@pytest.mark.parametrize("statement", IMPORTS)
def test_an_alias_is_followed_through_modules(statement: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.py").write_text(DEEP)
    kernel = "import torch\nrun = torch.relu\n"
    source = body(IMPORTS[statement], statement)
    found = findings(tmp_path, source, STRICT, kernel=kernel, middle=MIDDLE)
    line = (PASS + source).splitlines().index(f"    return {IMPORTS[statement]}") + 1
    assert f"Fuse.py:{line}" in {item.place for item in found}


def test_a_package_runs_and_is_inspected_with_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").write_text("from . import deep\nimport socket\n")
    (tmp_path / "inner" / "deep.py").write_text("import asyncio\n")
    found = findings(tmp_path, "import pass_dir.inner.deep\n", OPEN)
    assert [(item.name, item.place) for item in found] == [
        ("network", "inner/__init__.py:2"),
        ("thread", "inner/deep.py:1"),
    ]


def test_a_module_that_nobody_imports_is_left_alone(tmp_path: Path) -> None:
    assert findings(tmp_path, "", STRICT, kernel=KERNEL) == []


@pytest.mark.parametrize("beside", [True, False])
def test_input_passes_and_their_modules_are_inspected(beside: bool, tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    inputs = (tmp_path if beside else folder) / "const_pass_dir"
    folder.mkdir()
    inputs.mkdir()
    (inputs / "sorted_input_pass_rule_names.json").write_text('["First"]')
    (inputs / "First.py").write_text(PASS + "from const_pass_dir.kernel import run\nrun(1)\n")
    (inputs / "kernel.py").write_text(KERNEL)
    found = findings(folder, "from const_pass_dir.First import pattern as p\np(1)\n", STRICT)
    assert {(item.name, item.place) for item in found} == {
        ("torch_fallback", "const_pass_dir/kernel.py:3"),
        ("pattern_called", "Fuse.py:13"),
    }


def test_modules_that_import_each_other_are_inspected_once(tmp_path: Path) -> None:
    a = "from pass_dir.b import *\nfrom pass_dir.b import x\nimport socket\n"
    b = "from pass_dir.a import *\nfrom pass_dir.a import x\nimport socket\nx.y(z)\n"
    found = findings(tmp_path, "from pass_dir.a import x\n", OPEN, a=a, b=b)
    assert [item.place for item in found] == ["a.py:3", "b.py:3"]


def test_findings_are_ordered_and_one_a_name_and_line_the_heaviest(tmp_path: Path) -> None:
    source = "z = 1\ndef fused(x, y):\n    x @ torch.relu(x @ y)\n    import socket, asyncio\n"
    source += "    x @ y\n"
    found = findings(tmp_path, source, STRICT)
    assert [(item.weight, item.name, item.place) for item in found] == [
        ("reject", "torch_fallback", "Fuse.py:14"),
        ("flag", "network", "Fuse.py:15"),
        ("flag", "thread", "Fuse.py:15"),
        ("flag", "torch_fallback", "Fuse.py:16"),
    ]


def test_evidence_is_one_short_line(tmp_path: Path) -> None:
    found = findings(tmp_path, f"torch.relu({'1 + ' * 99} 1)\n", STRICT)
    assert found[0].evidence.startswith("torch.relu: `torch.relu(1 + 1")
    assert len(found[0].evidence) < 130 and "\n" not in found[0].evidence


def test_evidence_is_of_the_line_that_python_counts(tmp_path: Path) -> None:
    text = "a = 1  # \f \u2028 \x85 \x1c\ntorch.relu(1)\n"
    [found, *_] = findings(tmp_path, text, STRICT)
    assert found.evidence == "torch.relu: `torch.relu(1)`"


@pytest.mark.parametrize("file", ["kernel.so", "kernel.cpython-311-x86_64-linux-gnu.so", "Fuse.so"])
def test_a_module_without_source_is_found(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(b"\x7fELF")
    found = findings(tmp_path, "import pass_dir.kernel\n", OPEN)
    assert kinds(found) == EVASION and file in found[0].evidence


def test_a_declared_encoding_counts_as_it_does_for_python(tmp_path: Path) -> None:
    kernel = "# coding: unicode_escape\nx = 1 # \\nimport socket\n"
    assert kinds(findings(tmp_path, "from .kernel import x\n", OPEN, kernel=kernel)) == NETWORK


BROKEN = {
    "not Python": ("def run(:\n", r"kernel.py:1: not Python"),
    "not text": ("x = '\0'\n", r"kernel.py.*(not Python|cannot be read)"),
    "an unknown encoding": ("# coding: nothing\nx = 1\n", r"kernel.py.*not Python"),
    "a deep expression": (
        "x = " + "-" * 50_000 + "1\n",
        r"kernel.py.*(read|not Python)|too deeply",
    ),
    "a deep walk": ("x = y" + ".a()" * 980 + "\n", "too deeply"),
    "a large file": ("x = 1\n" * 1_000_000, r"kernel.py: larger than"),
    "a name for everything": (
        "import torch as x\n" + "x = x.a\n" * 100,
        "pass_dir.inner.kernel: x stands for more than 64 things",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_helper_module_that_cannot_be_read_is_one_clear_error(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "kernel.py").write_text(text)
    with pytest.raises(PassFolderError, match=message):
        findings(tmp_path, "from .inner.kernel import x\n", STRICT)


def test_too_many_modules_are_one_clear_error(tmp_path: Path) -> None:
    chain = {f"m{i}": f"from . import m{i + 1}\n" for i in range(120)}
    with pytest.raises(PassFolderError, match="more than 100 modules; put some of them together"):
        findings(tmp_path, "from . import m0\n", OPEN, **chain)


def test_nothing_of_the_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pass_dir.Fuse", raising=False)  # of a test before
    left = tmp_path / "left"
    findings(tmp_path, f"open({str(left)!r}, 'w')\n", OPEN)
    assert not left.exists() and "pass_dir.Fuse" not in sys.modules


@pytest.mark.parametrize("name", ["Fuse.v2", "2Fuse", "fuse-relu"])
def test_a_pass_of_any_name_is_inspected(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, [name], **{name: PASS + body("torch.relu(x)")})
    assert kinds(inspect_code(inspect_folder(tmp_path), STRICT)) == OP
    assert inspect_code(inspect_folder(tmp_path), OPEN) == []


def test_a_broken_module_that_nobody_imports_is_left_alone(tmp_path: Path) -> None:
    assert findings(tmp_path, body("x"), STRICT, draft="def f(:\n") == []
