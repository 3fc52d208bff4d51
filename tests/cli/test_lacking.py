"""Machines without torch, macOS and Windows: commands work there, or refuse in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.lacking import NAMES
from tests.conftest import ROOT
from tests.data.dataset.rows import write

MACHINES = ("torch", "windows")
"""macOS lacks a part of what Windows lacks."""

DEMO = str(ROOT / "baselines" / "demo")


def passnet_without(what: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.cli.lacking", what, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


WORKING = {
    "help": (("--help",), "optimize"),
    "suite list": (("suite", "list", "demo"), "rms_norm: "),
    "bench score": (("bench", "score", DEMO), "examples/passes"),
    "library list": (("library", "list", "shipped"), "judged on"),
}


@pytest.mark.parametrize("what", MACHINES)
@pytest.mark.parametrize("name", WORKING)
def test_a_command_that_reads_works_everywhere(what: str, name: str) -> None:
    words, expected = WORKING[name]
    done = passnet_without(what, *words)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def sentence(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the only line on the error stream of a command that refused."""
    assert done.returncode in (1, 2), done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.slow
def test_a_report_is_written_on_windows_which_lacks_most(tmp_path: Path) -> None:
    done = passnet_without("windows", "report", DEMO, "--out", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()


LIKE_MACOS = f"""
import os, signal
for module in (os, signal):
    for name in {NAMES["macos"].split()}:
        if hasattr(module, name):
            delattr(module, name)
"""


def passnet_on_macos(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command without what macOS lacks, in its child processes too."""
    (folder / "sitecustomize.py").write_text(LIKE_MACOS)
    machine = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}
    command = [sys.executable, "-m", "passnet.cli", *words]
    return subprocess.run(command, cwd=folder, env=machine, capture_output=True, text=True)


NET = """
import torch

def make():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval(), torch.randn(2, 8)
"""


@pytest.mark.slow
def test_a_net_is_optimised_on_macos(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NET)
    words = ("optimize", "nets.py:make", "--backend", "graph", "--seconds", "0.05")
    done = passnet_on_macos(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "graph" in done.stdout


@pytest.mark.slow
def test_a_question_to_a_dataset_is_answered_or_refused_by_name(tmp_path: Path) -> None:
    words = ("dataset", "query", str(write(tmp_path / "data")), "true")
    assert "rows that match" in passnet_on_macos(tmp_path, *words).stdout
    assert "Linux" in sentence(passnet_without("windows", *words))


REFUSED = {
    "torch": ("optimize", "timm/test_resnet"),
    "windows": ("optimize", "timm/test_resnet"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_command_that_lacks_something_says_what_in_one_sentence(what: str) -> None:
    needed = {"torch": "needs PyTorch, which is not installed: pip install torch"}
    line = sentence(passnet_without(what, *REFUSED[what]))
    assert line.startswith("passnet: this command ")
    assert needed.get(what, "needs Linux (") in line
