"""Apply passes to a graph: put one call to a replacement in the place of every match."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.fx

from passnet.errors import PassError
from passnet.passes.apply.write_back import write_back
from passnet.passes.match.graph_index import REPLACEMENT, WRITTEN_BACK, GraphIndex
from passnet.passes.match.guards import EXAMPLE, note_example_values
from passnet.passes.match.match import Miss, each_match
from passnet.passes.match.pattern import Match, Pass, Pattern, SkippedPass


@dataclass(frozen=True, slots=True)
class PassReport:
    """A pass's matches in a graph, and its nearest miss or the reason why it was skipped."""

    name: str
    num_matches: int
    miss: Miss | None = None
    skipped: str | None = None

    def sentence(self) -> str | None:
        """Return in one line why the pass did nothing; None if it did something."""
        return self.miss.sentence() if self.miss else self.skipped


@dataclass(frozen=True)
class Site:
    """One replaced match: the new call, its pass, the pattern's parameter values, earlier calls.

    A value is a node, a literal, or `UNREAD`; `replacement_args` made the earlier calls.
    """

    node: torch.fx.Node
    source: Pass
    inputs: tuple[Any, ...]
    prepared: tuple[torch.fx.Node, ...] = ()

    @property
    def pattern_arguments(self) -> tuple[Any, ...]:
        """Return the pattern's arguments: `inputs`, with None for unread parameters."""
        return tuple(None if value is UNREAD else value for value in self.inputs)


UNREAD = object()
"""Stand-in for a parameter that the pattern does not read."""

_LITERALS = (
    str, int, float, complex, bool, type(None), type(...), torch.dtype, torch.device,
    torch.memory_format, torch.layout, torch._ops.OpOverload,
)  # fmt: skip
"""Types that FX writes unchanged into a graph's code; their subclasses may write more."""


def apply_passes(
    module: torch.fx.GraphModule,
    passes: Sequence[Pass | SkippedPass],
    example_inputs: Sequence[Any] = (),
) -> tuple[list[PassReport], list[Site]]:
    """Rewrite a graph in place by every pass in order; return reports and replaced matches.

    Guards look at the example inputs, or else at what Dynamo has noted. A pass that fails (its
    guard, or the arguments of its replacement) is skipped; it is a PassError if all do.
    """
    ready = [pass_ for pass_ in passes if isinstance(pass_, Pass)]
    rewriting = _Rewriting(module.graph)
    calls = [rewriting.index.calls, *(pass_.pattern.calls for pass_ in ready)]
    writes = any(call.writes for each in calls for call in each.values())  # dtypes matter then
    if example_inputs and (writes or any(pass_.guards for pass_ in ready)):
        note_example_values(module, example_inputs)
    reports: list[PassReport] = []
    failures: list[PassError] = []
    for pass_ in passes:
        if isinstance(pass_, SkippedPass):
            reports.append(PassReport(pass_.name, 0, skipped=pass_.reason))
            continue
        num_sites = len(rewriting.sites)
        try:
            reports.append(rewriting.apply(pass_))
        except PassError as failure:
            failures.append(failure)
            num_matches, reason = len(rewriting.sites) - num_sites, f"skipped: {failure}"
            reports.append(PassReport(pass_.name, num_matches, skipped=reason))
    if failures and len(failures) == sum(isinstance(pass_, Pass) for pass_ in passes):
        raise failures[0]
    if rewriting.sites:
        module.graph.lint()
        module.recompile()
    return reports, [rewriting.current(site) for site in rewriting.sites]


def check_calls(module: torch.fx.GraphModule, sites: Sequence[Site]) -> None:
    """Raise a PassError unless a rewritten graph's code calls the replacements of all sites."""
    forward: Any = module.forward
    called = {id(value) for value in forward.__globals__.values()}
    missed = [site.source.name for site in sites if id(site.node.target) not in called]
    if missed:
        raise PassError(
            f"the code of the graph calls {len(sites) - len(missed)} of {len(sites)} replacements, "
            f"and not that of {missed[0]}; replacements must stay as they are while passes apply"
        )


class _Rewriting:
    """A graph under passes: its index, the sites so far, and the successors of replaced outputs."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.sites: list[Site] = []
        self.index = GraphIndex(graph)
        self._renamed: dict[torch.fx.Node, torch.fx.Node] = {}

    def apply(self, pass_: Pass) -> PassReport:
        """Replace all matches of a pass, until none is left."""
        first, num_calls = len(self.sites), len(self.index.calls)

        def put(match: Match) -> None:
            if len(self.sites) - first == num_calls:
                raise PassError(f"{pass_.name}: replacement_args makes what the pattern matches")
            self._replace(pass_, match)

        num_matches, miss = each_match(pass_.pattern, self.index, put, pass_.guards)
        num_new = num_matches
        while num_new:  # with a write replaced, what was not legal may be
            self.index = GraphIndex(self.index.graph)
            num_new, _ = each_match(pass_.pattern, self.index, put, pass_.guards)
            num_matches += num_new
        return PassReport(pass_.name, num_matches, miss)

    def current(self, site: Site) -> Site:
        """Return a site whose inputs are nodes of the present graph, after later replacements."""

        def renamed(node: torch.fx.Node) -> torch.fx.Node:
            while node in self._renamed:
                node = self._renamed[node]
            return node

        return replace(site, inputs=torch.fx.map_arg(site.inputs, renamed))

    def _replace(self, pass_: Pass, match: Match) -> None:
        graph = self.index.graph
        writes = write_back(match, self.index)
        inputs = tuple(match.nodes.get(param, UNREAD) for param in match.pattern.params)
        with graph.inserting_before(match.last.next):
            args, prepared = _arguments(pass_, inputs, graph)
            call = graph.call_function(_called(pass_.replacement), args)
            call.meta[REPLACEMENT] = pass_.name
            outputs = [match.nodes[output] for output in match.pattern.outputs]
            results = _results(match.pattern, call, graph)
            previous = results[-1]
            successors = dict(zip(outputs, results, strict=True))
            for value, output in {value: output for output, value in writes.copied.items()}.items():
                previous = graph.call_method("copy_", (value, successors[output]))
                previous.meta[WRITTEN_BACK] = pass_.name
                successors |= {
                    node: previous for node, into in writes.copied.items() if into is value
                }
        for node in (*writes.staying, *match.dependents):
            previous.append(node)
            previous = node
        for output, result in successors.items():
            if EXAMPLE in output.meta:
                result.meta[EXAMPLE] = output.meta[EXAMPLE]
            output.replace_all_uses_with(result)
            self._renamed[output] = result
        replaced = [node for node in match.calls if node not in writes.staying]
        replaced += self.index.unused_behind(replaced)
        for node in sorted(replaced, reverse=True):
            graph.erase_node(node)
        self.index.replaced(replaced, successors)
        self.sites.append(Site(call, pass_, inputs, prepared))


def _arguments(
    pass_: Pass, inputs: tuple[Any, ...], graph: torch.fx.Graph
) -> tuple[tuple[Any, ...], tuple[torch.fx.Node, ...]]:
    """Copy the calls of `replacement_args` into the graph; return its result and these calls.

    A PassError is raised before anything is copied.
    """
    *nodes, output = pass_.args_graph.nodes
    params = [node for node in nodes if node.op == "placeholder"]
    values = {
        param: value for param, value in zip(params, inputs, strict=True) if value is not UNREAD
    }
    for param in params:
        if param not in values and param.users:
            raise PassError(f"{pass_.name}: the pattern does not read {param.target}")
    calls = [node for node in nodes if node.op != "placeholder"]
    for node in calls:
        _check_literals(pass_, (node.args, node.kwargs))
        if isinstance(node.target, str) and not node.target.isidentifier():
            raise PassError(f"{pass_.name}: replacement_args calls {node.target!r}, no method")
    result = output.args[0]
    args = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    _check_literals(pass_, args)
    for node in calls:
        values[node] = graph.node_copy(node, lambda value: values[value])
    prepared = tuple(values[node] for node in calls)
    return torch.fx.map_arg(args, lambda value: values[value]), prepared


def _check_literals(pass_: Pass, value: Any) -> None:
    """Refuse values that FX would write into the graph's code as something else."""
    match value:
        case torch.fx.Node():
            return
        case dict():
            parts = [*value, *value.values()]
        case tuple() | list():
            parts = [*value]
        case slice() | range():
            parts = [value.start, value.stop, value.step]
        case _:
            parts = []
            if type(value) not in _LITERALS:
                raise PassError(
                    f"{pass_.name}: replacement_args gives a {type(value).__name__}; give "
                    "values of the graph, plain numbers, strings, dtypes, devices, and tuples and "
                    "lists of these"
                )
    for part in parts:
        _check_literals(pass_, part)


def _results(pattern: Pattern, call: torch.fx.Node, graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Return the nodes that stand for the pattern's outputs, in order."""
    num_outputs = len(pattern.outputs)
    if not pattern.returns_tuple:
        return [call]
    if num_outputs == 1:
        return [graph.call_function(only, (call,))]
    return [graph.call_function(operator.getitem, (call, index)) for index in range(num_outputs)]


def only(result: Any) -> Any:
    """Return the result of a replacement whose pattern returns a tuple of one."""
    return result[0] if isinstance(result, (tuple, list)) else result


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return our wrapper of a replacement, since FX writes functions by their declared name."""

    def replacement(*args: Any) -> Any:
        return function(*args)

    name = getattr(function, "__name__", None)
    if type(name) is str and name.isidentifier():
        replacement.__name__ = name  # for who reads the code
    return replacement
