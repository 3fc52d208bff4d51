"""The commands and Python blocks of every page, run in order in a folder of their own; slow."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from passnet.data.dataset.query import Dataset
from passnet.judge.suite.suite import load_suite
from tests.conftest import ROOT
from tests.docs.pages import PAGES, Command, commands, page_name, python_blocks
from tests.docs.shorter import (
    BEFORE,
    CORPORA,
    PREAMBLES,
    PYTHON_NOT_RUN,
    WITH_DATASET,
    shortened,
)

pytestmark = pytest.mark.slow  # reason: judges, captures and compiles as the pages do

LINKS = ("examples", "training", "baselines", "recipes", "integrations", "benchmarks", "suites")
MY_NET = """
import torch


def make():
    layers = torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)
    return torch.nn.Sequential(*layers).eval(), torch.randn(8, 64)
"""
TIMEOUT_S = 900


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a few captured graphs, in place of the shipped corpus."""
    folder = tmp_path_factory.mktemp("captured")
    nets = ("timm/test_resnet", "timm/test_vit", "timm/test_convnext")
    run(folder, ["passnet", "extract", *nets, "--out", "captures"])
    return folder / "captures"


@pytest.fixture(scope="session")
def dataset(captures: Path) -> Path:
    """Return a dataset of the captured graphs."""
    run(captures.parent, ["passnet", "dataset", "build", "captures", "--out", "data"])
    return captures.parent / "data"


def texts_that_run(page: Path) -> list[str]:
    """Return the commands and Python blocks that run of a page, and those before them."""
    run = [shortened(command.text) or "" for command in commands(page, "passnet", "python")]
    before = BEFORE.get(page_name(page)), PREAMBLES.get(page_name(page))
    return [*run, *python_blocks(page), *map(str, before)]


@pytest.fixture
def world(tmp_path: Path, page: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder that holds all that a page names."""
    for name in LINKS:
        (tmp_path / name).symlink_to(ROOT / name)
    for path in CORPORA:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to(ROOT / path)
    if any("captures" in text for text in texts_that_run(page)):
        (tmp_path / "captures").symlink_to(request.getfixturevalue("captures"))
    if page_name(page) in WITH_DATASET:
        (tmp_path / "data").symlink_to(request.getfixturevalue("dataset"))
    (tmp_path / "my_passes").symlink_to(ROOT / "examples" / "passes" / "gelu_tanh")
    graph = ROOT / "tests" / "exploits" / "graphs" / "odd_norm"
    shutil.copytree(graph, tmp_path / "my_graphs" / "rms_norm")
    (tmp_path / "my_nets.py").write_text(MY_NET)
    return tmp_path


def run(folder: Path, words: Sequence[str]) -> None:
    """Run a command in a folder; it must succeed."""
    program = {"passnet": [sys.executable, "-m", "passnet.cli"], "python": [sys.executable]}
    argv = [*program[words[0]], *words[1:]]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def words_to_run(folder: Path, command: Command) -> list[str] | None:
    """Return the words of a command as the test runs it; None if it is only parsed."""
    text = shortened(command.text)
    if text is None:
        return None
    words = [word for part in shlex.split(text) for word in expanded(folder, part)]
    return [placeholder(folder, word) for word in words]


def expanded(folder: Path, word: str) -> list[str]:
    """Return the paths of a folder that a word with wildcards names, or else the word."""
    if word.startswith("-") or not set(word) & {"*", "?"}:
        return [word]
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(word)) or [word]


def placeholder(folder: Path, word: str) -> str:
    """Return a value of the folder for a word of a page that names one row or task."""
    if word == "NAME":
        return load_suite(str(folder / "my-suite.parquet")).tasks[0].name
    if word == "3f0af06c":
        with Dataset(folder / "data") as dataset:
            return next(iter(dataset.rows("true"))).full[:12]
    return word


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=page_name)
def test_the_commands_of_a_page_run_in_order(page: Path, world: Path) -> None:
    before = list(BEFORE.get(page_name(page), ()))
    for command in commands(page, "passnet", "python"):
        words = words_to_run(world, command)
        if words is None:
            continue
        for start, needed in list(before):
            if command.text.startswith(start):
                run(world, shlex.split(needed))
                before.remove((start, needed))
        run(world, words)


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p)], ids=page_name)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, world: Path) -> None:
    name = page_name(page)
    text = "\n\n".join(python_blocks(page))
    compile(text, name, "exec")
    if name in PYTHON_NOT_RUN:
        return
    before, preamble, exchanged = PREAMBLES.get(name, ((), "", {}))
    for needed in before:
        run(world, shlex.split(needed))
    for old, new in exchanged.items():
        assert old in text, f"the page says no longer {old}"
        text = text.replace(old, new)
    (world / "page.py").write_text(f"{preamble}\n\n{text}\n")
    run(world, ["python", "page.py"])
