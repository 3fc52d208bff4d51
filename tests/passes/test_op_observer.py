"""What replacements compute with torch is observed in every mode, whatever they are called."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.errors import PassError
from passnet.passes.apply.guarded_call import guarded_call
from passnet.passes.apply.op_observer import Observer
from passnet.passes.apply.rewrite import apply_passes, check_calls
from passnet.passes.backend import passnet_backend
from tests.passes.graphs import graph_of, pass_of, write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

HEAD = """
import torch
def pattern(x):
    return torch.softmax(x, -1)
def replacement_func():
    return fused
"""
ARGUMENT = "def replacement_args(x):\n    return (x,)\n"
OPERATORS = ARGUMENT + "def fused(x):\n    e = x + 1\n    return e * x\n"
RENAMED = ARGUMENT + "def softmax(x):\n    return x + 1\nsoftmax.__module__ = 'torch'\n"
RENAMED += "fused = softmax\n"
MOVING = ARGUMENT + "def fused(x):\n    return torch.empty_like(x).copy_(x.t().t())\n"
MODES = [
    ("direct", "eager"), ("guarded", "eager"), ("compiled", "eager"), ("compiled", "inductor"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def net(x: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.softmax(x, -1) * 2,)


def observed_ops(folder: Path, source: str, mode: str = "direct", residual: str = "eager") -> Any:
    """The ops that a replacement uses in a watched call."""
    write_folder(folder, Fuse=HEAD + source)
    observer, x = Observer(), torch.rand(3, 3)
    options = {"passes": folder, "residual": residual, "observer": observer}
    backend = partial(passnet_backend, options=options)
    with torch.no_grad():
        is_compiled = mode == "compiled"
        call: Any = torch.compile(net, backend=backend) if is_compiled else None
        call = call or backend(graph_of(net), [x])
        if mode == "guarded":
            call = guarded_call(graph_of(net), call, [x])
        call(x)
        assert not observer.observations
        with observer.watching():
            call(x)
        call(x)
    [observation] = observer.observations.values()
    return list(observation.ops)


@pytest.mark.parametrize(("mode", "residual"), MODES)
def test_what_a_replacement_computes_is_seen_in_every_mode(
    mode: str, residual: str, tmp_path: Path
) -> None:
    assert observed_ops(tmp_path, OPERATORS, mode, residual) == ["aten.add", "aten.mul"]


@pytest.mark.parametrize(("mode", "residual"), MODES[:3])
def test_moving_and_creating_is_no_computing(mode: str, residual: str, tmp_path: Path) -> None:
    assert observed_ops(tmp_path, MOVING, mode, residual) == []


@pytest.mark.parametrize(("mode", "residual"), MODES[:3])
def test_a_replacement_that_bears_the_name_of_an_op_is_called_and_seen(
    mode: str, residual: str, tmp_path: Path
) -> None:
    assert observed_ops(tmp_path, RENAMED, mode, residual) == ["aten.add"]


PREPARED = {
    "x.exp()": ["exp"],
    "torch.log_softmax(x, -1)": ["log_softmax"],
    "x * 2": ["mul"],
    "x[x.long()]": ["getitem"],
    "helper(x)": ["<function helper"],
    "x.t().contiguous().to(torch.float32)[0:3]": [],
    "x.reshape(x.shape[0], x.size(0) * 2 // 2)": [],
}


@pytest.mark.parametrize("expression", PREPARED)
def test_what_replacement_args_computes_is_named(expression: str, tmp_path: Path) -> None:
    helper = "def helper(x):\n    return x\ntorch.fx.wrap('helper')\n"
    prepared = f"def replacement_args(x):\n    return {expression}, x\n"
    source = helper + prepared + "def fused(x, y):\n    return y.clone()\n"
    named = [op.removeprefix("replacement_args: ") for op in observed_ops(tmp_path, source)]
    assert [name.split(" at ")[0] for name in named] == PREPARED[expression]


class Text(str):
    """A string that would be written into the code of a graph as a call of torch."""

    def __repr__(self) -> str:
        return "torch.softmax(x, -1)"


@pytest.mark.parametrize("literal", [Text("a"), (1, Text("a")), [Text("a")], slice(Text("a"))])
def test_a_literal_that_would_be_code_is_refused(literal: Any) -> None:
    passes = [pass_of(lambda x: torch.relu(x), lambda x, y: x, lambda x: (x, literal))]
    with pytest.raises(PassError, match="gives a Text; give values of the graph"):
        apply_passes(graph_of(lambda x: (torch.relu(x),)), passes)


def test_arguments_that_the_pattern_matches_again_are_refused() -> None:
    passes = [pass_of(lambda x: torch.relu(x), lambda x: x, lambda x: (torch.relu(x),))]
    with pytest.raises(PassError, match="replacement_args makes what the pattern matches"):
        apply_passes(graph_of(lambda x: (torch.relu(x),)), passes)


def test_a_method_that_would_be_code_is_refused() -> None:
    def args(x: Any) -> Any:
        return (getattr(x, "softmax(-1).view")(3),)

    passes = [pass_of(lambda x: torch.relu(x), lambda x: x, args)]
    with pytest.raises(PassError, match="no method"):
        apply_passes(graph_of(lambda x: (torch.relu(x),)), passes)


def test_a_graph_that_calls_less_than_its_replacements_is_refused() -> None:
    module = graph_of(lambda x: (torch.relu(x) + torch.sin(x),))
    passes = [pass_of(torch_call) for torch_call in (lambda x: torch.relu(x),)]
    _, [site] = apply_passes(module, passes)
    check_calls(module, [site])
    site.node.target = torch.relu
    module.recompile()
    with pytest.raises(PassError, match="calls 0 of 1 replacements, and not that of Fuse"):
        check_calls(module, [site])
