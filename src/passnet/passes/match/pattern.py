"""Patterns, passes made of them, and the matches of a pattern in a graph."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.errors import PassError, boundary
from passnet.passes.match.graph_index import GraphIndex, StaleRead, stale_reads, unused_calls
from passnet.passes.match.guards import Guards, make_guards
from passnet.passes.match.normalise import LITERAL, CanonicalCall, normalise
from passnet.passes.match.trace import trace

LITERAL_TYPES: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "str": str, "tuple": tuple,
    "torch.dtype": torch.dtype, "torch.device": torch.device,
}  # fmt: skip
"""Annotations that let a parameter of a pattern stand for a literal: `pattern(x, eps: float)`."""


@dataclass(frozen=True)
class Pattern:
    """A pattern to search for.

    `body` are its calls in topological order, `calls` their normal forms. `literals` maps
    parameters annotated by `LITERAL_TYPES` to that type. `stale` are uses of a value under an older
    name than that of a write into it.
    """

    name: str
    params: tuple[torch.fx.Node, ...]
    body: tuple[torch.fx.Node, ...]
    calls: dict[torch.fx.Node, CanonicalCall]
    outputs: tuple[torch.fx.Node, ...]
    returns_tuple: bool
    anchor: torch.fx.Node
    literals: Mapping[torch.fx.Node, type]
    stale: frozenset[StaleRead]


@dataclass(frozen=True)
class Pass:
    """A pattern, its replacement with the traced graph of its arguments, and optional guards.

    `has_bare_kernels`: its folder has C++ kernels that take unchecked addresses. `digest` is of
    the content of its folder, if it has one; `kernel_ops` make the ops of the folder's kernels.
    """

    name: str
    pattern: Pattern
    replacement: Callable[..., Any]
    args_graph: torch.fx.Graph
    guards: Guards | None = None
    has_bare_kernels: bool = False
    digest: str = ""
    kernel_ops: tuple[Callable[[], torch._ops.OpOverload], ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedPass:
    """A pass that cannot be traced, and the reason; the others of its folder apply."""

    name: str
    reason: str


def make_pattern(name: str, pattern: Any) -> Pattern:
    """Return the pattern of a function or GraphModule; raise PassError if it is none."""
    label = f"{name}.pattern"
    is_ready = isinstance(pattern, torch.fx.GraphModule)
    graph = pattern.graph if is_ready else trace(pattern, label)
    params = tuple(node for node in graph.nodes if node.op == "placeholder")
    literals = {} if is_ready else _literals(pattern, params)
    for param, kind in literals.items():
        param.meta[LITERAL] = kind
    result = next(node for node in graph.nodes if node.op == "output").args[0]
    returned = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    body = _live_calls(graph, label)
    for value in returned:
        if not isinstance(value, torch.fx.Node) or value not in body:
            raise PassError(f"{label} returns {value!r}, which is no value that it computes")
    if len(set(returned)) != len(returned):
        raise PassError(f"{label} returns the same value twice")
    index = GraphIndex(graph)
    return Pattern(
        name=name,
        params=params,
        body=body,
        calls={node: index.calls[node] for node in body},
        outputs=returned,
        returns_tuple=isinstance(result, (tuple, list)),
        anchor=_anchor(body),
        literals=literals,
        stale=frozenset(stale_reads(index, body)),
    )


def _literals(pattern: Any, params: tuple[torch.fx.Node, ...]) -> dict[torch.fx.Node, type]:
    types: dict[Any, type] = {**LITERAL_TYPES, **{kind: kind for kind in LITERAL_TYPES.values()}}
    signature = inspect.signature(pattern).parameters.values()
    return {
        node: types[param.annotation]
        for node, param in zip(params, signature, strict=True)
        if isinstance(param.annotation, (str, type)) and param.annotation in types
    }


def _live_calls(graph: torch.fx.Graph, label: str) -> tuple[torch.fx.Node, ...]:
    """Return the calls that an output or a written value needs, in order."""
    body = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    for node in body:
        if node.op not in ("call_function", "call_method"):
            call = f"{node.op} {node.target}"
            raise PassError(f"{label} uses {call}; call functions and methods only")
    unused = unused_calls(body, lambda node: bool(normalise(node).writes))
    live = tuple(node for node in body if node not in unused)
    if not live:
        raise PassError(f"{label} calls nothing, so there is nothing to look for")
    return live


def _anchor(body: tuple[torch.fx.Node, ...]) -> torch.fx.Node:
    """Return the call with the most calls behind it, which settles most when it is matched."""
    behind: dict[torch.fx.Node, set[torch.fx.Node]] = {}
    for node in body:
        behind[node] = {node}.union(*(behind.get(source, ()) for source in node.all_input_nodes))
    return max(reversed(body), key=lambda node: len(behind[node]))


def make_pass(
    name: str,
    pattern: Any,
    replacement_args: Any,
    replacement_func: Any,
    guards: Any = (),
    guard: Any = None,
) -> Pass:
    """Return a pass from its three callables and guards; raise PassError if they do not fit."""
    ready = make_pattern(name, pattern)
    args_graph = trace(replacement_args, f"{name}.replacement_args")
    num_args = sum(node.op == "placeholder" for node in args_graph.nodes)
    if num_args != len(ready.params):
        raise PassError(
            f"{name}: pattern takes {len(ready.params)} arguments and replacement_args {num_args}; "
            "give both the same"
        )
    with boundary(PassError, f"calling {name}.replacement_func()"):
        function, again = replacement_func(), replacement_func()
    if function is not again:
        raise PassError(
            f"{name}.replacement_func() returned two different objects; "
            "return one callable defined at module level"
        )
    if not callable(function):
        kind = type(function).__name__
        raise PassError(f"{name}.replacement_func() returned a {kind}, not a callable")
    params = [str(param.target) for param in ready.params]
    checked = make_guards(f"{name}.guards", guards, guard, params)
    return Pass(name, ready, function, args_graph, checked)


def as_module(pattern: Pattern) -> torch.fx.GraphModule:
    """Return a pattern as a module from its parameters' values to its outputs."""
    graph = torch.fx.Graph()
    copied = {param: graph.placeholder(param.name) for param in pattern.params}
    for node in pattern.body:
        copied[node] = graph.node_copy(node, lambda value: copied[value])
    graph.output(tuple(copied[output] for output in pattern.outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@dataclass(frozen=True, slots=True)
class Match:
    """A match of a pattern: `nodes` maps each of its nodes to the graph's, or to a literal.

    `calls` maps the graph's calls back; `first` and `last` are their ends in the graph.
    `dependents` are the nodes in between, outside the match, that depend on it.
    """

    pattern: Pattern
    nodes: dict[torch.fx.Node, Any]
    calls: dict[torch.fx.Node, torch.fx.Node]
    first: torch.fx.Node
    last: torch.fx.Node
    dependents: tuple[torch.fx.Node, ...]


def make_match(pattern: Pattern, nodes: dict[torch.fx.Node, Any]) -> Match:
    """Return the match for a complete assignment of a pattern's nodes."""
    calls: dict[torch.fx.Node, torch.fx.Node] = {nodes[node]: node for node in pattern.body}
    first, last = min(calls), max(calls)
    dependents: dict[torch.fx.Node, None] = {}
    node = first
    while node is not last:
        node = node.next
        sources = node.all_input_nodes
        if node not in calls and any(source in calls or source in dependents for source in sources):
            dependents[node] = None
    return Match(pattern, nodes, calls, first, last, tuple(dependents))
