"""`passnet examples copy`, from a checkout and from a wheel."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.cli.terminal.parser import PATH
from tests.conftest import ROOT

MAX_WHEEL_BYTES = 5_000_000


def test_examples_are_copied_once(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    result = CliRunner().invoke(main, ["examples", "copy", str(out), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"folder": str(out), "checkpoint": str(out / "llm")}
    copied = {path.relative_to(out) for path in out.rglob("*.py")}
    assert copied == {path.relative_to(ROOT / "examples") for path in ROOT.glob("examples/**/*.py")}
    assert (out / "llm" / "model" / "model.safetensors").is_file()
    again = CliRunner().invoke(main, ["examples", "copy", str(out)])
    assert again.exit_code == 2 and f"{out}: already exists" in again.stderr


@pytest.mark.parametrize("name", [".", "..", "../empty"])
def test_the_folder_that_a_command_runs_in_is_not_replaced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = CliRunner().invoke(main, ["examples", "copy", name])
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit)
    assert "name a new folder" in result.stderr or "already exists" in result.stderr
    assert not [*Path().iterdir()]


@pytest.mark.parametrize("name", [".", "a/..", "/"])
def test_a_path_of_the_command_line_ends_in_a_name_wherever_it_can(name: str) -> None:
    assert PATH.convert("a/b", None, None) == Path("a/b")
    assert PATH.convert(name, None, None) == Path(name).resolve()


def wheel_of(project: Path, folder: Path) -> Path:
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=project, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def test_a_wheel_has_the_examples_and_stays_small(tmp_path: Path) -> None:
    wheel = wheel_of(ROOT, tmp_path / "dist")
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    installed = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    packages = {path.parent.name for path in installed.glob("*/__init__.py")}
    assert {path.parent.name for path in installed.glob("*/py.typed")} == packages
    script = "from passnet.cli import main; main(['examples', 'copy', 'mine'])"
    words = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = ['site']; {script}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "examples are in mine" in done.stdout, done.stderr
    assert "pip install 'passnet[llm]'" in done.stdout
    assert (tmp_path / "mine" / "passes" / "rms_norm").is_dir()
    assert not list(tmp_path.glob("mine/**/__pycache__"))


def test_the_llm_is_a_wheel_of_its_own_which_the_command_copies(tmp_path: Path) -> None:
    installed = tmp_path / "site"
    for number, project in enumerate((ROOT, ROOT / "training" / "llm")):
        zipfile.ZipFile(wheel_of(project, tmp_path / str(number))).extractall(installed)
    script = "from passnet.cli import main; main(['examples', 'copy', 'mine'])"
    words = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = ['site']; {script}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "--author trained:mine/llm" in done.stdout, done.stderr
    assert (tmp_path / "mine" / "llm" / "model" / "model.safetensors").is_file()
