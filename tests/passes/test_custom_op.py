"""Replacements stay what they are where Inductor compiles the rest around them."""

from pathlib import Path
from typing import Any

import torch

from tests.passes.graphs import write_folder

CLAMP = """
import torch

def pattern(x, y):
    return (torch.relu(x + y),)

def replacement_args(x, y):
    return x, y

def fused(x, y):
    return torch.clamp(x + y, min=0)

def replacement_func():
    return fused
"""
SCALE = CLAMP.replace("(torch.relu(x + y),)", "x * y").replace("clamp(x + y, min=0)", "mul(x, y)")


def test_a_result_in_a_tuple_of_one_feeds_another_replacement(tmp_path: Path) -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y) * y

    folder = write_folder(tmp_path, Clamp=CLAMP, Scale=SCALE)
    matches: list[int] = []
    options: dict[str, Any] = {
        "passes": folder,
        "residual": "inductor",
        "report": lambda reports: matches.extend(report.num_matches for report in reports),
    }
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    torch._dynamo.reset()
    with torch.no_grad():
        actual = torch.compile(net, backend="passnet", options=options)(x, y)
    assert matches == [1, 1]
    assert torch.equal(actual, net(x, y))
