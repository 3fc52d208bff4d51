"""The commands and Python blocks of every page, run in its order in a folder of its own; slow."""

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
from tests.docs.page_passes import write_passes_of_the_page
from tests.docs.page_process import PageProcess, environment
from tests.docs.pages import PAGES, Command, Step, page_name, steps
from tests.docs.shorter import (
    BEFORE,
    BLOCKS_NOT_RUN,
    BLOCKS_RUN_ELSEWHERE,
    CORPORA,
    PREAMBLES,
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


def text_of(step: Step) -> str:
    return step.text if isinstance(step, Command) else step


def runs(page: Path, step: Step) -> bool:
    """Return whether this test runs a step of a page."""
    if isinstance(step, Command):
        return shortened(step.text) is not None
    is_run_elsewhere = page_name(page) in BLOCKS_RUN_ELSEWHERE
    return not is_run_elsewhere and not any(part in step for part, _ in BLOCKS_NOT_RUN)


def texts_that_run(page: Path) -> list[str]:
    """Return the steps of a page that run, and what runs before them."""
    run = [step for step in steps(page) if runs(page, step)]
    texts = [step if isinstance(step, str) else shortened(step.text) or "" for step in run]
    return [*texts, *(needed for _, needed in BEFORE.get(page_name(page), ()))]


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
    write_passes_of_the_page(tmp_path / "my_passes")
    graph = ROOT / "tests" / "exploits" / "graphs" / "odd_norm"
    shutil.copytree(graph, tmp_path / "my_graphs" / "rms_norm")
    (tmp_path / "my_nets.py").write_text(MY_NET)
    return tmp_path


def run(folder: Path, words: Sequence[str]) -> None:
    """Run a command in a folder; it must succeed."""
    program = {"passnet": [sys.executable, "-m", "passnet.cli"], "python": [sys.executable]}
    argv, env = [*program[words[0]], *words[1:]], environment()
    done = subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def words_to_run(folder: Path, command: Command) -> list[str]:
    """Return the words of a command as the test runs it."""
    text = shortened(command.text) or command.text
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


@pytest.mark.parametrize("page", [page for page in PAGES if steps(page)], ids=page_name)
def test_the_commands_and_blocks_of_a_page_run_in_order(page: Path, world: Path) -> None:
    before = list(BEFORE.get(page_name(page), ()))
    preamble, exchanged = PREAMBLES.get(page_name(page), ("", {}))
    is_begun = False
    with PageProcess(world) as process:
        for step in steps(page):
            if isinstance(step, str):
                compile(step, page_name(page), "exec")
            if not runs(page, step):
                continue
            for start, needed in list(before):
                if text_of(step).startswith(start):
                    run(world, shlex.split(needed))
                    before.remove((start, needed))
            if isinstance(step, Command):
                run(world, words_to_run(world, step))
                continue
            if not is_begun:
                process.run(preamble)
                is_begun = True
            for old, new in exchanged.items():
                step = step.replace(old, new)
            process.run(step)


def test_blocks_share_names_and_their_errors_are_shown(tmp_path: Path) -> None:
    with PageProcess(tmp_path) as process:
        process.run("a = 1\nprint(a)")
        process.run("assert a == 1")
        with pytest.raises(AssertionError, match="NameError: name 'b'"):
            process.run("b")
