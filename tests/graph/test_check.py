"""Checks in several processes: whose graph brought its process down."""

from pathlib import Path

import pytest

from passnet.graph.text.check import check_all
from passnet.graph.text.files import GraphSample, write_sample
from tests.judge.folders import small_graph

SITE = """
import os, time
import passnet.graph.text.check as check

check_graph = check.check_graph


def patched(path, build):
    if path.name == "slow":
        time.sleep(2)
    if path.name == "crash":
        os._exit(1)
    return check_graph(path, build)


check.check_graph = patched
"""
"""Python runs it when a process starts; no graph is known that crashes torch on every machine."""


@pytest.fixture
def crashing_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that start from now on end when they are to check a graph named `crash`."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=":")


@pytest.mark.usefixtures("crashing_processes")
def test_only_the_graph_that_brings_its_process_down_fails(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("slow", "crash", "a", "b", "c")]
    for folder in folders:
        write_sample(folder, GraphSample(small_graph().graph))
    checks = list(check_all(folders, False, 2))
    assert [check.path for check in checks] == [str(folder) for folder in folders]
    assert [check.parsed for check in checks] == [True, False, True, True, True]
    assert [check.crashed for check in checks] == [False, True, False, False, False]
    assert "the checking process ended" in (checks[1].error or "")
