"""The commands and Python blocks of every page, run in order in a folder of their own; slow."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.pages import PAGES, commands, page_name, python_blocks

pytestmark = pytest.mark.slow  # reason: judges, captures and compiles as the pages do

SHORTER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("passnet bench run --suite passbench-v1 ", ("--task", "fusible_0001", "--seconds", "0.05")),
)
"""Commands that take long as they stand -> words that shorten them; the first that fits is used."""

NOT_RUN: tuple[tuple[str, str], ...] = (
    ("--llm openai/", "asks an LLM of a provider"),
    ("hub/", "downloads from a hub"),
    ("--executor ray", "needs a Ray cluster"),
    ("--device cuda", "needs a GPU"),
    ("judge serve", "serves until it is stopped; tests/train/service runs it"),
)
"""Parts of commands that are only parsed -> the reason."""

LINKS = ("examples", "tests", "training", "baselines", "recipes", "integrations", "suites")
TIMEOUT_S = 900


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a few captured graphs, in place of the shipped corpus."""
    folder = tmp_path_factory.mktemp("captured")
    run(folder, ["passnet", "extract", "timm/test_resnet", "timm/test_vit", "--out", "captures"])
    return folder / "captures"


@pytest.fixture
def world(tmp_path: Path, captures: Path) -> Path:
    """Return a folder that holds all that pages name."""
    for name in LINKS:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "captures").symlink_to(captures)
    (tmp_path / "my_passes").symlink_to(ROOT / "examples" / "passes" / "rms_norm")
    (tmp_path / "my_net.py").write_text(
        "import torch\n\n\ndef make():\n"
        "    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).eval()\n"
        "    return net, torch.randn(8, 64)\n"
    )
    return tmp_path


def run(folder: Path, words: Sequence[str]) -> None:
    """Run a command in a folder; it must succeed."""
    if words[0] == "passnet":
        words = [sys.executable, "-m", "passnet.cli", *words[1:]]
    elif words[0] == "python":
        words = [sys.executable, *words[1:]]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def words_to_run(text: str, words: Sequence[str]) -> list[str] | None:
    """Return the words of a command as the test runs it; None if it is only parsed."""
    if any(part in text for part, _ in NOT_RUN):
        return None
    extra = next((more for start, more in SHORTER if text.startswith(start)), ())
    return [*words, *extra]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_commands_of_a_page_run_in_order(page: Path, world: Path) -> None:
    for command in commands(page):
        if (words := words_to_run(command.text, command.words)) is not None:
            run(world, words)


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p)], ids=page_name)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, world: Path) -> None:
    script = world / "page.py"
    script.write_text("\n\n".join(python_blocks(page)))
    run(world, ["python", str(script)])
