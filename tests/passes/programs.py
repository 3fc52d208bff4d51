"""Random straight-line graphs of small tensors, and patterns cut out of them, for Hypothesis."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from hypothesis import strategies as st

from passnet.passes.match.graph_index import REPLACEMENT

F = torch.nn.functional
SHAPE = (4, 6)
PARAMS = {"x": SHAPE, "y": SHAPE, "mean": SHAPE[1:], "var": SHAPE[1:]}

Choice = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A call to add: its target (a text names a method), arguments after the first, keywords."""

PLAIN: list[Choice] = [
    (torch.relu, (), {}),
    (torch.sigmoid, (), {}),
    ("tanh", (), {}),
    ("neg", (), {}),
    (operator.mul, (0.5,), {}),
    (F.softmax, (-1,), {}),
    (F.softmax, (), {"dim": 0}),
    ("clone", (), {}),
]
VIEWS: list[Choice] = [
    ("view", (-1,), {}),
    ("reshape", (6, 4), {}),
    ("reshape", (4, 6), {}),
    ("transpose", (0, 1), {}),
    ("unsqueeze", (0,), {}),
    ("squeeze", (0,), {}),
    ("contiguous", (), {}),
    (F.dropout, (0.5, False), {}),
    (operator.getitem, (slice(0, 2),), {}),
    (operator.getitem, ((slice(None), slice(0, 3)),), {}),
]
WRITES: list[Choice] = [
    ("tanh_", (), {}),
    ("fill_", (0.25,), {}),
    (F.relu, (), {"inplace": True}),
    (torch.relu_, (), {}),
    (operator.imul, (0.5,), {}),
    (operator.setitem, (0, 0.75), {}),
]
WITH_ANOTHER: list[Any] = [operator.add, operator.mul, torch.sub]
WITH_ANOTHER_WRITES: list[Any] = [operator.iadd, "mul_", "copy_"]
"""Calls that take a second value of the same shape."""


@dataclass(frozen=True)
class Program:
    """A graph, and values for its arguments."""

    module: torch.fx.GraphModule
    inputs: list[torch.Tensor]

    @property
    def calls(self) -> list[torch.fx.Node]:
        """The calls of the graph, in order."""
        return [
            node for node in self.module.graph.nodes if node.op not in ("placeholder", "output")
        ]


@st.composite
def programs(draw: Callable[..., Any], writes: bool) -> Program:
    """A graph of up to twelve calls that runs without an error, with or without in-place calls."""
    seed = draw(st.integers(0, 2**16))
    random = torch.Generator().manual_seed(seed)
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.Tensor] = {}
    for name, shape in PARAMS.items():
        values[graph.placeholder(name)] = torch.rand(shape, generator=random, dtype=torch.float64)
    inputs = [value.clone() for value in values.values()]
    num_calls = draw(st.integers(1, 12))
    for _ in range(num_calls):
        _add_call(draw, graph, values, writes)
    calls = [node for node in values if node.op != "placeholder"]
    outputs = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=3)) if calls else []
    graph.output((*outputs, *calls[-1:]))
    if not writes:
        graph.eliminate_dead_code()
    return Program(torch.fx.GraphModule(torch.nn.Module(), graph), inputs)


def _add_call(
    draw: Callable[..., Any],
    graph: torch.fx.Graph,
    values: dict[torch.fx.Node, torch.Tensor],
    writes: bool,
) -> None:
    """Add one call, unless it cannot be made on the values drawn for it."""
    nodes = list(values)
    first = draw(st.sampled_from(nodes[:2] + nodes[4:]))
    same_shape = [node for node in nodes if values[node].shape == values[first].shape]
    kinds = ["plain", "view", "another", "norm", *(["write", "another_write"] if writes else [])]
    kind = draw(st.sampled_from(kinds))
    target: Any
    if kind in ("another", "another_write"):
        target = draw(st.sampled_from(WITH_ANOTHER if kind == "another" else WITH_ANOTHER_WRITES))
        args, kwargs = (first, draw(st.sampled_from(same_shape))), {}
    elif kind == "norm":
        training = draw(st.booleans()) if writes else False
        target, kwargs = F.batch_norm, {"training": training}
        args = (first, *nodes[2:4])
    else:
        choices = {"plain": PLAIN, "view": VIEWS, "write": WRITES}[kind]
        target, operands, kwargs = draw(st.sampled_from(choices))
        args = (first, *operands)
    try:
        result = _run(target, args, kwargs, values)
    except (RuntimeError, IndexError, ValueError):  # no view of that shape, or memory that overlaps
        return
    op = "call_method" if isinstance(target, str) else "call_function"
    node = graph.create_node(op, target, args, kwargs)
    if isinstance(result, torch.Tensor):
        values[node] = result


def _run(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: dict[torch.fx.Node, torch.Tensor],
) -> Any:
    operands = torch.fx.map_arg(args, values.__getitem__)
    if isinstance(target, str):
        return getattr(operands[0], target)(*operands[1:], **kwargs)
    return target(*operands, **kwargs)


@st.composite
def cuts(draw: Callable[..., Any], program: Program, gaps: bool) -> torch.fx.GraphModule | None:
    """A pattern that a range of a graph's calls makes, some left out where `gaps`; or None.

    What is used outside the range is returned; None where nothing is that could be.
    """
    calls = program.calls
    if not calls:
        return None
    start = draw(st.integers(0, len(calls) - 1))
    stop = draw(st.integers(start + 1, min(len(calls), start + 6)))
    inside = calls[start:stop]
    if gaps:
        keep = draw(st.lists(st.booleans(), min_size=len(inside), max_size=len(inside)))
        inside = [node for node, is_kept in zip(inside, keep, strict=True) if is_kept]
    returned = [node for node in inside if any(user not in inside for user in node.users)]
    if not returned:
        return None
    inside = _needed(inside, returned)
    return _pattern(inside, returned, bare=len(returned) == 1 and draw(st.booleans()))


def _needed(inside: list[torch.fx.Node], returned: list[torch.fx.Node]) -> list[torch.fx.Node]:
    """The calls that write or that what is returned or written needs."""
    writing = [*(choice[0] for choice in WRITES if choice[0] is not F.relu), *WITH_ANOTHER_WRITES]
    live: list[torch.fx.Node] = []
    for node in reversed(inside):
        writes = node.target in writing or "inplace" in node.kwargs
        if writes or node in returned or any(user in live for user in node.users):
            live.append(node)
    return live[::-1]


def _pattern(
    inside: list[torch.fx.Node], returned: list[torch.fx.Node], bare: bool
) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in inside:
        for source in node.all_input_nodes:
            if source not in inside and source not in copies:
                copies[source] = graph.placeholder(f"p{len(copies)}")
    for node in inside:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    results = tuple(copies[node] for node in returned)
    graph.output(results[0] if bare else results)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def renamed(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph with other names for all its values."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for index, node in enumerate(reversed(module.graph.nodes)):
        node.meta["other_name"] = f"other_{index}"
    for node in module.graph.nodes:
        name = node.meta["other_name"]
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), copies.__getitem__)
        target = name if node.op == "placeholder" else node.target
        copies[node] = graph.create_node(node.op, target, args, kwargs, name=name)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def structure(module: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    """A graph without its names: for every node what it does, on which nodes by position."""
    order = {node: f"#{index}" for index, node in enumerate(module.graph.nodes)}
    calls = []
    for node in module.graph.nodes:
        args = torch.fx.map_arg((node.args, node.kwargs), order.__getitem__)
        target: Any = None if node.op == "placeholder" else node.target
        if REPLACEMENT in node.meta:  # a function of its own at every site
            target = target.__closure__[0].cell_contents
        calls.append((node.op, target, repr(args)))
    return calls
