"""Checks in several processes: whose graph brought its process down."""

from pathlib import Path

import pytest

from passnet.errors import GraphError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.check import check_all
from passnet.graph.text.files import GraphSample, write_sample
from passnet.graph.text.parse import parse_program
from passnet.graph.values.fake import infer_shapes
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


def test_an_op_that_refuses_its_arguments_is_named_in_one_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = """
import torch
class GraphModule(torch.nn.Module):
    def forward(self, x):
        y = x.scatter_(0, x, 1.0)
        return (y,)
"""
    graph = Graph(parse_program(text), (TensorSpec("x", (3,), "float32"),))
    with pytest.raises(GraphError, match=r"model.py:5: Tensor.scatter_: RuntimeError") as caught:
        infer_shapes(graph)
    assert len(str(caught.value).splitlines()) == 1
    assert capfd.readouterr().err == ""
