"""A judged pass on machines as they are: docs/machines.md says what works there."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from passnet.core.records.folders import INDUCTOR_VARIABLE, inductor_cache
from tests.conftest import ROOT
from tests.faults import small_disk

STRANGER = 12345
NOBODY = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
"""Starts a command as a user without an entry in /etc/passwd."""

PASSES = ROOT / "examples" / "passes" / "gelu_tanh"


def judge(
    folder: Path,
    machine: Mapping[str, str],
    before: Sequence[str] = (),
    passes: Path = PASSES,
    sandbox: str = "auto",
) -> "subprocess.CompletedProcess[str]":
    """Judge a pass with a C++ kernel in a folder, with only some variables set."""
    words = ["--candidate", str(passes), "--out", str(folder / "out"), "--sandbox", sandbox]
    timing = ["--seconds", "0.05", "--self-tolerance", "100"]
    program = [sys.executable, "-m", "passnet.cli", "bench", "run", "--suite", "demo-small"]
    path = {"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*before, *program, "--task", "gelu_tanh", *words, *timing],
        cwd=folder, env={**path, **machine}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def is_right(folder: Path, done: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether the pass was compiled and is right; fail with the output otherwise."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    [trial] = (folder / "out" / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads(trial)["status"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("home", ["none", "a stranger's"])
def test_a_user_without_an_entry_judges_with_or_without_a_home(home: str, tmp_path: Path) -> None:
    if subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a user namespace cannot be made here")
    machine = {"TMPDIR": str(tmp_path)}
    if home != "none":
        if os.geteuid() != 0:
            pytest.skip("only root gives folders to other users")
        (tmp_path / "home").mkdir()
        os.chown(tmp_path / "home", STRANGER, STRANGER)
        machine["HOME"] = str(tmp_path / "home")
    assert is_right(tmp_path, judge(tmp_path, machine, NOBODY))


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_tables_are_drawn_with_ascii_where_the_locale_has_nothing_else() -> None:
    words = [sys.executable, "-m", "passnet.cli", "bench", "show", "baselines/demo"]
    machine = {**os.environ, **ASCII}
    done = subprocess.run(words, cwd=ROOT, env=machine, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and b"1.013 - 1.042" in done.stdout


@pytest.mark.slow
def test_a_small_temporary_folder_an_ascii_locale_and_paths_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    shutil.copytree(PASSES, folder / "my passes")
    with small_disk(folder / "small disk", "8m") as disk:
        machine = {"TMPDIR": str(disk), "PASSNET_CACHE": str(folder / "my cache"), **ASCII}
        done = judge(folder, machine, passes=folder / "my passes")
    assert is_right(folder, done)
    assert done.stdout.isascii()
    assert list((folder / "my cache").rglob("*.so"))


@pytest.mark.slow
def test_without_a_compiler_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    machine = {"HOME": str(tmp_path), "PATH": str(tmp_path)}
    done = judge(tmp_path, machine, sandbox="none")
    assert done.returncode == 1
    assert "C++ kernels need g++; install it, or name another compiler in CXX" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_inductor_gets_a_folder_that_nobody_else_may_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PASSNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(INDUCTOR_VARIABLE, "")
    usual = inductor_cache()
    assert usual.parent == tmp_path and usual.name.startswith("torchinductor_")
    usual.chmod(0o777)
    own = inductor_cache()
    assert own == tmp_path / "cache" / "inductor" and os.environ[INDUCTOR_VARIABLE] == str(own)
    assert inductor_cache() == own


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_dockerfile_installs_what_the_workflow_does_and_runs_a_target_that_exists() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    [packages] = [line.split("install -y ")[1] for line in workflow.splitlines() if "-y" in line]
    assert all(package in DOCKERFILE for package in packages.split())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\ndemo:" in makefile and "\n.venv/core:" in makefile
    assert 'CMD ["make", "demo"]' in DOCKERFILE and "make .venv/core" in DOCKERFILE
    [version] = [line.split("==")[1] for line in makefile.splitlines() if "TORCH ?=" in line]
    assert f"torch=={version}+cpu" in DOCKERFILE
