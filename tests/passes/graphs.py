"""Small graphs and passes written as functions, and what it takes to compare them."""

import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

from passnet.passes.apply.rewrite import PassReport, apply_passes
from passnet.passes.match.pattern import Pass, make_pass
from passnet.passes.match.trace import trace

CLAMP_ALONE = """
import torch

def pattern(x, y):
    return torch.relu(x + y)

def replacement_args(x, y):
    return x, y

def fused(x, y):
    return torch.clamp(x + y, min=0)

def replacement_func():
    return fused
"""
"""A pass of torch ops as the text of a file."""

CLAMP = CLAMP_ALONE.replace("torch.relu(x + y)", "(torch.relu(x + y),)")
"""The same, whose pattern returns a tuple."""


def graph_of(function: Callable[..., Any]) -> torch.fx.GraphModule:
    """The graph module of the calls that a function makes, in-place calls kept as such."""
    return torch.fx.GraphModule(torch.nn.Module(), trace(function, function.__name__))


def pass_of(
    pattern: Any,
    replacement: Callable[..., Any] | None = None,
    replacement_args: Callable[..., Any] | None = None,
    name: str = "Fuse",
) -> Pass:
    """A pass; without a replacement, one that runs the pattern and leaves its inputs alone."""

    def same(*args: Any) -> Any:
        return pattern(*(copied(arg) for arg in args))

    function = replacement or same
    return make_pass(name, pattern, replacement_args or _all_args(pattern), lambda: function)


def _all_args(pattern: Any) -> Callable[..., Any]:
    """A `replacement_args` that hands on every parameter of a pattern."""
    if isinstance(pattern, torch.fx.GraphModule):
        names = [node.name for node in pattern.graph.nodes if node.op == "placeholder"]
    else:
        names = list(inspect.signature(pattern).parameters)
    listed = "".join(f"{name}, " for name in names)
    function: Callable[..., Any] = eval(f"lambda {listed}: ({listed})")
    return function


def rewritten(
    function: Callable[..., Any], *passes: Pass
) -> tuple[torch.fx.GraphModule, list[PassReport]]:
    """The graph of a function after some passes, and what they did."""
    module = graph_of(function)
    reports, _ = apply_passes(module, passes)
    return module, reports


def code(module: torch.fx.GraphModule) -> str:
    """The body of a graph's code, without hints on lifetimes and the names of our own modules."""
    lines = [line.split(";")[0].strip() for line in module.code.strip().splitlines()[1:]]
    text = "\n".join(lines)
    for node in module.graph.nodes:
        where = getattr(node.target, "__module__", None)
        if where is not None:
            text = text.replace(where.replace(".", "_") + "_", "")
    return text


def copied(value: Any) -> Any:
    """A copy of a tensor, anything else as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def outcome(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """What a function returns on copies of some inputs, and then what it leaves in them."""
    args = [copied(value) for value in inputs]
    result = function(*args)
    return [*(result if isinstance(result, (tuple, list)) else [result]), *args]


def assert_same(
    first: Callable[..., Any], second: Callable[..., Any], inputs: Sequence[Any]
) -> None:
    """Both return the same values, to the bit, and leave the same values in their inputs."""
    for a, b in zip(outcome(first, inputs), outcome(second, inputs), strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=0, equal_nan=True)


def check_rewrite(
    net: Callable[..., Any], pattern: Any, inputs: Sequence[Any], refused: str | None
) -> None:
    """The pattern is replaced, or refused for a reason with these words; values stay either way."""
    module, [report] = rewritten(net, pass_of(pattern))
    assert_same(net, module, inputs)
    if refused is None:
        assert report.num_matches == 1, report.miss
    else:
        assert report.num_matches == 0
        assert refused in report.miss.sentence()


def write_folder(folder: Path, names: Any = None, **modules: str) -> Path:
    """A pass folder with a module for each keyword; `names` is the list, all modules by default."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = list(modules) if names is None else names
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(listed), "utf-8")
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder
