"""`judge audit` and `library verify` on two Ray nodes, one of which is lost at work."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.core.hardware import this_hardware
from passnet.passes.library.store import PassLibrary
from tests.bench.ray_actors import another_compiler, nodes
from tests.bench.runs import passnet
from tests.optimizer.libraries import folder, outcome, tanh_mul

EXPLOITS = Path(__file__).parents[1] / "exploits"
CASES = ("f02_late_thread", "f03_lazy_pages")
ON_RAY = ("--executor", "ray", "--jobs", 2)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]


def test_an_audit_and_a_verification_leave_an_odd_node_out(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in ("graphs", *CASES):
        shutil.copytree(EXPLOITS / name, corpus / name)
    library = PassLibrary(tmp_path / "library")
    wrong = ("a + b", "a - b", "a.tanh() + b")
    entries = [
        library.add(tanh_mul(), "llm", this_hardware(1), folder(text), outcome()) for text in wrong
    ]
    with nodes({}, another_compiler(tmp_path / "bin")):
        audited = passnet("judge", "audit", corpus, *ON_RAY, "--json", timeout_s=400)
        words = ("library", "verify", library.folder, *ON_RAY, "--seconds", "0.05", "--json")
        verified = passnet(*words, timeout_s=400)
    rows = json.loads(audited.stdout)["cases"]
    assert [row["name"] for row in rows] == list(CASES), audited.stderr
    assert not any(row["gained"] for row in rows)
    results = json.loads(verified.stdout)
    assert verified.returncode == 1, "they are wrong"
    before = sorted(result["before"]["digest"] for result in results)
    assert before == sorted(entry.digest for entry in entries)
    assert [(each["after"]["status"], each["error"]) for each in results] == [("wrong", None)] * 3
    for errors in (audited.stderr, verified.stderr):
        assert errors.count("it has compiler g++ of another machine") <= 1
    assert "left out: machine" in audited.stderr + verified.stderr


def test_jobs_and_loads_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    shutil.copytree(EXPLOITS / CASES[0], tmp_path / CASES[0])
    loaded = passnet("judge", "audit", tmp_path, *ON_RAY, "--load", 2)
    assert loaded.returncode == 2 and "--load keeps this machine busy" in loaded.stderr
    alone = passnet("judge", "audit", tmp_path, "--jobs", 2)
    assert alone.returncode == 2 and "--jobs goes with --executor ray" in alone.stderr
