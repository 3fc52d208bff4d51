"""A folder is loaded as it is now; folders of the published benchmark load and apply."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from passnet.errors import PassError
from passnet.graph.fx.build import build
from passnet.graph.text.parse import parse_program
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import LIST_FILE, inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.match.pattern import Pass
from tests.conftest import CORPUS
from tests.judge.folders import GOOD, PROGRAM, write_passes
from tests.judge.inspection_folder import PASS

FOLDERS = sorted(path.parent for path in (CORPUS / "pass_folders").glob(f"*/{LIST_FILE}"))
GRAPHS = {
    "match_patched_signature": PROGRAM.replace("torch.relu(", "torch.nn.functional.relu("),
    "match_inplace_argument_not_returned": PROGRAM.replace(
        "        tmp_0 = in_0 + in_1\n        tmp_1 = torch.relu(tmp_0)\n",
        "        tmp_0 = in_1.sigmoid()\n        in_0 += tmp_0\n        in_2 = in_0\n"
        "        tmp_1 = in_2.softmax(-1)\n",
    ),
}
"""Graphs of folders that are not written for `PROGRAM`."""


def write(folder: Path, **modules: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Fuse"]))


def test_what_came_to_a_folder_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    (folder / "parts").mkdir(parents=True)
    write(folder, Fuse=PASS + "from pass_dir.parts.first import fused\n")
    (folder / "parts" / "first.py").write_text("fused = print\n")
    times = [(path, path.stat().st_mtime_ns) for path in (folder, folder / "parts")]
    [first] = load_passes(inspect_folder(folder))
    assert isinstance(first, Pass)
    imports = "from pass_dir import other\nfrom pass_dir.parts.second import fused\n"
    write(folder, Fuse=PASS + imports, other="")
    (folder / "parts" / "second.py").write_text("fused = print\n")
    for path, modified in times:  # as if it were all within one tick of the clock
        os.utime(path, ns=(modified, modified))
    [second] = load_passes(inspect_folder(folder))
    assert isinstance(second, Pass)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for Triton, whose kernels are only imported here."""
    stand_in: Any = ModuleType("triton")
    stand_in.jit, stand_in.language = (lambda function: function), ModuleType("triton.language")
    stand_in.language.constexpr = int
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    monkeypatch.setitem(sys.modules, "triton.language", stand_in.language)
    monkeypatch.setattr(torch.nn.functional.relu, "__signature__", None, raising=False)
    monkeypatch.delattr(torch.nn.functional.relu, "__signature__")
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.skipif(not FOLDERS, reason="the shared folders are not here")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.usefixtures("triton")
def test_a_shared_folder_loads_and_is_applied(folder: Path) -> None:
    module = build(parse_program(GRAPHS.get(folder.name, PROGRAM)))
    if folder.name == "cpu_cuda_tensor_at_import" and not torch.cuda.is_available():
        with pytest.raises(PassError, match="pass P: this needs a GPU, which is missing here; "):
            load_passes(inspect_folder(folder))
        return
    reports, _ = apply_passes(module, load_passes(inspect_folder(folder)))
    assert [report.num_matches for report in reports][-1] == 1, reports


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import triton_of_nobody", "ModuleNotFoundError: No module named 'triton_of_nobody'"),
        ("raise ModuleNotFoundError(name='triton.language')", "this needs Triton, which is not"),
        ("raise RuntimeError('0 active drivers ([]). There should only be one.')", "needs a GPU"),
    ],
)
def test_what_a_machine_lacks_is_said_with_a_remedy(line: str, words: str, tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", f"{line}\n{GOOD}")
    with pytest.raises(PassError, match=words):
        load_passes(inspect_folder(folder))
