"""Commands that other packages add by an entry point."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = '''import click


@click.command()
def hello() -> None:
    """Say hello."""
    click.echo("hello from afar")
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages that add the commands `hello` and `broken`."""
    metadata = tmp_path / "faraway-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: faraway\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[passnet.commands]\nhello = faraway:hello\nbroken = faraway:gone\n"
        "judge.hello = faraway:hello\noptimize.hello = faraway:hello\njudge.gone = faraway:gone\n"
    )
    (tmp_path / "faraway.py").write_text(GOOD)
    return tmp_path


def passnet_with(site: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "passnet.cli", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.getenv("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )


def test_an_entry_point_adds_a_command(site: Path) -> None:
    assert passnet_with(site, "hello").stdout == "hello from afar\n"
    listed = passnet_with(site, "--help").stdout
    assert "hello" in listed and "Say hello." in listed


@pytest.mark.parametrize("group", ["judge", "optimize"])
def test_an_entry_point_adds_a_command_to_a_group(site: Path, group: str) -> None:
    assert passnet_with(site, group, "hello").stdout == "hello from afar\n"
    listed = passnet_with(site, group, "--help").stdout
    assert "Say hello." in listed and f"{group}.hello" not in listed
    assert f"{group}.hello" not in passnet_with(site, "--help").stdout
    assert "; did you mean hello" in passnet_with(site, "judge", "helo").stderr


def test_a_command_of_a_group_that_fails_to_load_is_named_in_full(site: Path) -> None:
    assert "loading `passnet judge gone` of" in passnet_with(site, "judge", "gone").stderr


def test_a_command_that_fails_to_load_says_so_and_harms_no_other(site: Path) -> None:
    done = passnet_with(site, "broken", "--any", "word")
    assert done.returncode == 1
    assert done.stderr.startswith("passnet: loading `passnet broken` of the package faraway: Attr")
    assert done.stderr.endswith("; reinstall or uninstall faraway\n")
    assert "Broken: loading" in passnet_with(site, "--help").stdout


def test_a_misspelt_command_of_another_package_is_suggested(site: Path) -> None:
    assert "; did you mean hello" in passnet_with(site, "helo").stderr
