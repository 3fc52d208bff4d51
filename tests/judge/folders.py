"""Pass folders for one small graph, each with a replacement that misbehaves in its own way."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.task import TaskGraph

PROGRAM = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 + in_1
        tmp_1 = torch.relu(tmp_0)
        return (tmp_1,)
"""

PATTERN = """
import torch

def pattern(x, y):
    return torch.relu(x + y)

def replacement_args(x, y):
    return x, y

def replacement_func():
    return replacement
"""


def small_graph(shape: tuple[int, ...] = (64, 64), dtype: str = "float32") -> TaskGraph:
    """The graph relu(in_0 + in_1)."""
    specs = tuple(
        TensorSpec(name, shape, dtype, mean=0.1 * index, std=1.0)
        for index, name in enumerate(("in_0", "in_1"))
    )
    return TaskGraph("add_relu", "add_relu-0", Graph(parse_program(PROGRAM), specs))


def write_passes(folder: Path, body: str, name: str = "Fuse") -> Path:
    """A pass folder whose pass has the pattern above and `body` for the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(PATTERN + body, encoding="utf-8")
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps([name]), encoding="utf-8")
    return folder


GOOD = """
def replacement(x, y):
    return torch.clamp(x + y, min=0)
"""


def some_slow(names: Iterable[str], num_quick: int) -> list[Any]:
    """Return parameters of a test: the first ones run always, the others are slow."""
    return [
        name if number < num_quick else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(names)
    ]
