"""The values of a graph without their numbers: dtypes, shapes and strides, as guards see them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
import torch.fx
from torch._guards import detect_fake_mode

from passnet.graph.values.fake import fake_mode

EXAMPLE = "example_value"
"""Key in a node's `meta` of a stand-in for its value; Dynamo writes it too."""


def note_example_values(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
    """Note at every node what its value is like, where Dynamo has not.

    Where an op cannot be run without numbers, what follows is not known.
    """
    nodes = [node for node in module.graph.nodes if node.op != "output"]
    if all(EXAMPLE in node.meta for node in nodes):
        return
    mode = detect_fake_mode(example_inputs) or fake_mode()
    values = [
        mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
        for value in example_inputs
    ]

    class Noting(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if n.op != "output":
                n.meta.setdefault(EXAMPLE, value)
            return value

    with suppress(Exception), mode, torch.no_grad():  # boundary: whatever torch raises
        Noting(module).run(*values)


def example_of(value: Any) -> Any:
    """What a parameter of a pattern stands for, as a guard sees it: a stand-in for a value of the
    graph (None where it is not known), a literal as it is.
    """
    return value.meta.get(EXAMPLE) if isinstance(value, torch.fx.Node) else value
